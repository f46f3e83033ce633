package coordinator

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

// through is a Gateways in which every store keeps its counters in one memory.
type through struct {
	of   *memory.Store
	hang chan struct{} // not nil: calls of the policy "slow" wait until it is closed
	err  error

	mu       sync.Mutex
	kept     []policy.Store
	retained map[string]struct{}
	asked    []string // addresses
	params   limiter.Params
	command  limiter.Command
	closed   bool
}

func newThrough() *through {
	return &through{of: memory.New(memory.Options{Clock: func() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }, First: true})}
}

func (g *through) Keep(_ context.Context, of policy.Store) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kept = append(g.kept, of)
}

func (g *through) Retain(used map[string]struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.retained = used
}

func (g *through) Close() { g.closed = true }

func (g *through) Apply(ctx context.Context, address string, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	g.mu.Lock()
	g.asked, g.params, g.command = append(g.asked, address), p, c
	g.mu.Unlock()
	if g.hang != nil && key.Scope.Policy == "slow" {
		<-g.hang
	}
	if g.err != nil {
		return limiter.Result{}, g.err
	}
	return g.of.Apply(ctx, key, p, c)
}

const hidden = "hunter2"

// behind returns p with its counters in a Redis behind the controller.
func behind(p policy.Policy) policy.Policy {
	p.Store = policy.Store{Type: policy.RedisStore, Address: "cache.internal:6379", TLS: true, Secret: "shop/redis-login", SecretVersion: "4711", Gateway: true}
	return p
}

// by has a leader ask g, in every term.
func (g *through) by(c *Config) {
	c.Gateways = func() Gateways { return g }
	c.Reached = func(policy.Store) store.Reached { return store.Reached{Now: 1} }
}

// askFor names the store that the holder leases from.
func askFor(p policy.Policy) func(*fleetpb.LeaseRequest) {
	return func(r *fleetpb.LeaseRequest) { r.Gateway = p.Store.Sent().Address }
}

// TestNothingOfAStoreBehindTheControllerIsSent, whatever is said to the holder.
func TestNothingOfAStoreBehindTheControllerIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, g := behind(limited("shop", 1, 10, limiter.Second)), newThrough()
		published := publishing(p)
		published.keeps(func(policy.Store) (map[string][]byte, error) {
			return map[string][]byte{"password": []byte(hidden)}, nil
		})
		l := lead(t, &memoryTerms{}, published, g.by)
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		next := func() *fleetpb.ToHolder {
			m := s.recv()
			data, err := protojson.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			text := string(data) + string(m.GetConfig().GetSnapshot())
			for _, secret := range []string{"cache", "6379", "login", "4711", hidden, "clocks"} {
				if strings.Contains(text, secret) {
					t.Errorf("%q is sent in %s", secret, text)
				}
			}
			return m
		}
		sent := next().GetConfig()
		snapshot, err := policy.Decode(sent.GetSnapshot())
		if err != nil || len(sent.GetSecrets()) > 0 || snapshot.Policies[0].Store != p.Store.Sent() {
			t.Errorf("sent %+v with %d Secrets, error %v", snapshot, len(sent.GetSecrets()), err)
		}
		s.acknowledge(sent.GetVersion(), "")
		synctest.Wait()
		if len(g.kept) == 0 || g.kept[0] != p.Store {
			t.Errorf("the controller opens %v", g.kept)
		}
		if got := l.Observe(p.Namespace, p.Name).Sessions; len(got) != 1 || got[0].Enforced == nil || got[0].Enforced.Store != p.Store {
			t.Errorf("it is observed that %+v", got)
		}
		s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Lease{Lease: &fleetpb.LeaseRequest{
			Id: 1, Key: &fleetpb.Key{Namespace: "shop", Policy: "checkout", Limit: "all"}, Generation: 1, Min: 1, Want: 1,
		}}}) // to the controller's own store
		for m := next(); ; m = next() {
			if r := m.GetLease(); r != nil {
				if !r.GetOfLimit() || !strings.Contains(r.GetError(), "does not keep its counters where") {
					t.Errorf("a lease from elsewhere is answered by %v", r)
				}
				break
			}
		}
	})
}

// TestALeaseThroughTheController is decided by the clock of the store and the rates of the
// policy.
func TestALeaseThroughTheController(t *testing.T) {
	for name, cluster := range map[string]bool{"one clock": false, "several clocks": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, g := behind(limited("shop", 2, 10, limiter.Second)), newThrough()
				p.Store.Cluster, p.Since = cluster, 5
				own := limited("shop", 1, 4, limiter.Second)
				own.Name = "own"
				l := lead(t, &memoryTerms{}, publishing(p, own), g.by)
				s := l.connect(pod("shop", "web-0"), "1")
				s.config()
				time.Sleep(time.Second) // the controller's own store serves whole windows
				reply := s.lease(p, p.Limits[0], want(8), askFor(p), func(r *fleetpb.LeaseRequest) { r.FloorMicros = 3 })
				if reply.GetGranted() != 8 || reply.GetNowMicros() == 0 || (reply.GetClockMicros() > 0) == cluster {
					t.Errorf("answered %v", reply)
				}
				params, command := p.Limits[0].Params(&p), g.command
				if g.params.Since != 5 || g.params.Generation != 2 || g.params.Rates[0] != params.Rates[0] || command.Want != 8 || command.Floor != 3 {
					t.Errorf("the store is asked for %+v by %+v", command, g.params)
				}
				s.lease(p, p.Limits[0], askFor(p), func(r *fleetpb.LeaseRequest) {
					r.Generation, r.Rates[0].Limit = 1, 1_000_000 // the holder's word of the rates
				})
				if g.params.Generation != 1 || g.params.Rates[0].Limit != 10 {
					t.Errorf("an older generation is asked for by %+v", g.params)
				}
				if r := s.lease(p, p.Limits[0], askFor(p), func(r *fleetpb.LeaseRequest) { r.Gateway = "another" }); !r.GetOfLimit() || len(g.asked) != 2 {
					t.Errorf("from another store: %v", r)
				}
				if r := s.lease(own, own.Limits[0]); r.GetGranted() != 1 || len(g.asked) != 2 {
					t.Errorf("the controller's own store answers %v", r)
				}
				if r := s.lease(own, own.Limits[0], askFor(p)); !r.GetOfLimit() || len(g.asked) != 2 {
					t.Errorf("one that is not asked so answers %v", r)
				}
				l.policies.set(true, own)
				l.Refresh("shop")
				time.Sleep(time.Second)
				synctest.Wait()
				if len(g.retained) != 0 {
					t.Errorf("the stores %v stay open", g.retained)
				}
				s.close()
				l.end()
				if !g.closed {
					t.Error("its stores are not closed with the term")
				}
			})
		})
	}
}

// TestASlowStoreHoldsUpNothingElseOfItsStream, and only a bounded number of leases waits for it.
func TestASlowStoreHoldsUpNothingElseOfItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newThrough()
		slow, fast, own := behind(limited("shop", 1, 1000, limiter.Second)), behind(limited("shop", 1, 10, limiter.Second)), limited("shop", 1, 4, limiter.Second)
		slow.Name, fast.Name, own.Name = "slow", "fast", "own"
		slow.Store.Address = "slow.internal:6379"
		l := lead(t, &memoryTerms{}, publishing(fast, own, slow), g.by)
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		time.Sleep(time.Second) // the controller's own store serves whole windows
		start := time.Now()
		g.hang = make(chan struct{})
		for id := range maxThrough {
			s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Lease{Lease: &fleetpb.LeaseRequest{
				Id: uint64(1000 + id), Key: &fleetpb.Key{Namespace: "shop", Policy: "slow", Limit: "all"}, Generation: 1,
				Op: int32(limiter.Take), Min: 1, Want: 1, Gateway: slow.Store.Sent().Address,
				Rates: []*fleetpb.Rate{{Limit: 1000, WindowMicros: int64(limiter.Second)}},
			}}})
		}
		synctest.Wait()
		if r := s.lease(slow, slow.Limits[0], askFor(slow)); r.GetDefect() || r.GetOfLimit() || !strings.Contains(r.GetError(), "64 leases of this sidecar wait") {
			t.Errorf("one more is answered by %v", r)
		}
		if r := s.lease(fast, fast.Limits[0], askFor(fast)); r.GetGranted() != 1 {
			t.Errorf("another store behind the controller answers %v", r)
		}
		if r := s.lease(own, own.Limits[0]); r.GetGranted() != 1 {
			t.Errorf("the controller's own store answers %v", r)
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("they waited for %v", waited)
		}
		close(g.hang)
		for range maxThrough {
			if r := s.recv().GetLease(); r.GetGranted() != 1 {
				t.Errorf("when it answers: %v", r)
			}
		}
		synctest.Wait()
		g.hang = nil
		if r := s.lease(slow, slow.Limits[0], askFor(slow)); r.GetGranted() != 1 {
			t.Errorf("later: %v", r)
		}
	})
}

// TestALeaseThatIsUnderWayIsAnsweredBeforeTheGoodbye, since what it grants would be lost.
func TestALeaseThatIsUnderWayIsAnsweredBeforeTheGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, g := behind(limited("shop", 1, 10, limiter.Second)), newThrough()
		p.Name, g.hang = "slow", make(chan struct{})
		l := lead(t, &memoryTerms{}, publishing(p), g.by)
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Lease{Lease: &fleetpb.LeaseRequest{
			Id: 7, Key: &fleetpb.Key{Namespace: "shop", Policy: "slow", Limit: "all"}, Generation: 1,
			Op: int32(limiter.Take), Min: 1, Want: 1, Gateway: p.Store.Sent().Address,
			Rates: []*fleetpb.Rate{{Limit: 10, WindowMicros: int64(limiter.Second)}},
		}}})
		synctest.Wait()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.end()
		}()
		synctest.Wait()
		close(g.hang)
		if r := s.recv(); r.GetLease().GetGranted() != 1 {
			t.Errorf("the sidecar hears %v, want its lease", r)
		}
		if r := s.recv(); r.GetGoodbye() == nil {
			t.Errorf("then it hears %v, want goodbye", r)
		}
		<-ended
	})
}

// TestErrorsOfAStoreBehindTheController are not the holder's fault.
func TestErrorsOfAStoreBehindTheController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, g := behind(limited("shop", 1, 10, limiter.Second)), newThrough()
		l := lead(t, &memoryTerms{}, publishing(p), g.by)
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		for name, tc := range map[string]struct {
			err             error
			defect, ofLimit bool
		}{
			"an outage":           {&store.UnavailableError{Store: "s", Cause: errors.New("away")}, false, false},
			"an outage of a part": {&store.UnavailableError{Store: "s", Cause: errors.New("away"), Part: store.Scope{Limit: "other"}}, false, true},
			"a defect":            {&store.Failure{Why: "away"}, true, false},
		} {
			g.err = tc.err
			r := s.lease(p, p.Limits[0], askFor(p))
			if r.GetDefect() != tc.defect || r.GetOfLimit() != tc.ofLimit || !strings.Contains(r.GetError(), "away") || strings.HasSuffix(r.GetError(), cure) {
				t.Errorf("%s is answered by %v", name, r)
			}
		}
		if got := l.Observe(p.Namespace, p.Name).Sessions[0].Rejected; got != "" {
			t.Errorf("the sidecar is said to be wrong: %s", got)
		}
	})
}

// TestALeaderThatWasReplacedDoesNoHarm: what it carries late, the store counts.
func TestALeaderThatWasReplacedDoesNoHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, g, terms := behind(limited("shop", 1, 10, limiter.Second)), newThrough(), &memoryTerms{}
		old := lead(t, terms, publishing(p), g.by)
		stays := old.connect(pod("shop", "web-0"), "1")
		stays.config()
		next := lead(t, terms, publishing(p), g.by)
		moves := next.connect(pod("shop", "web-1"), "1")
		moves.config()
		var granted int64
		for range 4 {
			granted += stays.lease(p, p.Limits[0], want(4), askFor(p)).GetGranted()
			granted += moves.lease(p, p.Limits[0], want(4), askFor(p)).GetGranted()
		}
		if granted != 10 {
			t.Errorf("two leaders granted %d of 10", granted)
		}
		stays.close()
		moves.close()
		old.end()
		next.end()
	})
}

// TestOtherCredentialsAreNotSentToAHolder: only the controller reads them.
func TestOtherCredentialsAreNotSentToAHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, g := behind(limited("shop", 1, 10, limiter.Second)), newThrough()
		l := lead(t, &memoryTerms{}, publishing(p), g.by)
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		p.Store.SecretVersion = "4712"
		l.policies.set(true, p)
		l.Refresh("shop")
		synctest.Wait()
		if last := g.kept[len(g.kept)-1]; last != p.Store {
			t.Errorf("the controller keeps %+v open", last)
		}
		if got := l.Observe(p.Namespace, p.Name).Sessions[0]; got.Generation != 1 {
			t.Errorf("it is observed that %+v", got)
		}
	})
}
