package redis

import (
	"testing"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/internal/testing/redistest/dial"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/redis"
)

var params = ledger.Params{
	Limit: 10, Window: limiter.MinWindow, Members: []ledger.Member{{Name: "a", Weight: 1, Borrowing: -1}},
}

// send sends a command of one holder that must be answered.
func send(t *testing.T, c *Coordinator, id string, cmd ledger.Command) ledger.Grant {
	t.Helper()
	cmd.Member, cmd.Holder = "a", "h"
	g, err := c.Apply(t.Context(), id, params, cmd)
	if err != nil {
		t.Fatalf("%+v: %v", cmd, err)
	}
	return g
}

// TestABudgetThatNobodyAsksForIsForgotten looks at when Redis drops the key.
func TestABudgetThatNobodyAsksForIsForgotten(t *testing.T) {
	server := redistest.Start(t)
	c := New(dial.Server(t, server))
	for seq := range int64(3) {
		send(t, c, "acme/checkout", ledger.Command{Op: ledger.Lease, Seq: 1 + seq, Min: 1, Want: 1})
	}
	keys := server.Do("KEYS", "weir:*").([]any)
	if len(keys) != 1 {
		t.Fatalf("the keys are %v", keys)
	}
	const kept = int64(2 * limiter.MaxWindow / limiter.Second)
	if left := server.Do("TTL", keys[0]).(int64); left < kept-60 || left > kept {
		t.Errorf("it is kept for %d s, want %d", left, kept)
	}
}

// TestAnUnreadableBudgetIsRefused meets a layout that this version does not know.
func TestAnUnreadableBudgetIsRefused(t *testing.T) {
	server := redistest.Start(t)
	c := New(dial.Server(t, server))
	send(t, c, "acme/checkout", ledger.Command{Op: ledger.Lease, Seq: 1, Min: 1, Want: 1})
	key := server.Do("KEYS", "weir:*").([]any)[0]
	head := server.Do("HGET", key, "memory").(string)
	server.Do("HSET", key, "memory", "\x02"+head[1:])
	again := ledger.Command{Op: ledger.Lease, Member: "a", Holder: "h", Seq: 2, Min: 1, Want: 1}
	if g, err := c.Apply(t.Context(), "acme/checkout", params, again); err == nil {
		t.Errorf("got %+v", g)
	}
	if s, err := c.Observe(t.Context(), "acme/checkout"); err == nil {
		t.Errorf("got %+v", s)
	}
}

// TestTermsRise lets the server lose all it knows while its clock stands before terms
// that were served.
func TestTermsRise(t *testing.T) {
	subject := clocked(t)
	c := subject.Coordinator.(*Coordinator)
	first := send(t, c, "acme/checkout", ledger.Command{Op: ledger.Release, Seq: 1})
	subject.Forget["FLUSHALL"]()
	subject.Set(first.Now - 1000)
	again := send(t, c, "acme/checkout", ledger.Command{Op: ledger.Lease, Seq: 2, Epoch: first.Epoch, Min: 1, Want: 1})
	if again.Epoch.Term <= first.Epoch.Term || again.Reason != ledger.Amnesia {
		t.Errorf("got %+v after %+v", again, first)
	}
	largest := ledger.Epoch{Index: first.Epoch.Index, Term: limiter.MaxExact}
	for seq := range int64(3) {
		last := send(t, c, "acme/checkout", ledger.Command{Op: ledger.Lease, Seq: 3 + seq, Epoch: largest, Min: 1, Want: 1})
		if last.Epoch.Term != limiter.MaxExact {
			t.Errorf("got %+v having named term %d", last, largest.Term)
		}
	}
}

// TestARestrictedUserIsEnough gives the rights that the documentation names.
func TestARestrictedUserIsEnough(t *testing.T) {
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "app", "on", ">secret", "~weir:*", "+eval", "+evalsha", "+info", "+time",
		"+hello", "+client|setname", "+hget", "+hset", "+hdel", "+hkeys", "+hgetall", "+pexpireat")
	c := New(dial.Open(t, redis.Options{Addresses: []string{server.Addr}, User: "app", Password: "secret"}))
	for seq := int64(1); ; seq++ { // over the end of windows
		g := send(t, c, "acme/checkout", ledger.Command{Op: ledger.Lease, Seq: seq, Min: 1, Want: 1})
		send(t, c, "acme/checkout", ledger.Command{Op: ledger.Report, Usage: []ledger.Usage{{Index: g.Epoch.Index - 1}}})
		s, err := c.Observe(t.Context(), "acme/checkout")
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Closed) == ledger.MaxClosed {
			return
		}
	}
}
