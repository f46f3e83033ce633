package coordinator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/records"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestAnotherStreamOfThePodReplacesTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		defer l.end()
		first := l.connect(pod("shop", "web-0"), "1")
		defer first.close()
		first.config()
		second := l.connect(pod("shop", "web-0"), "2")
		defer second.close()
		second.config()
		if got := status.Code(first.failure()); got != codes.Aborted {
			t.Errorf("code = %v, want %v", got, codes.Aborted)
		}
		got := l.Observe("shop", "checkout")
		if got.Holders != 1 || len(got.Sessions) != 1 || got.Sessions[0].Nonce != "2" {
			t.Errorf("observation = %+v, want the second session alone", got)
		}
	})
}

func TestASilentSidecarIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		if got := status.Code(s.failure()); got != codes.DeadlineExceeded {
			t.Errorf("code = %v, want %v", got, codes.DeadlineExceeded)
		}
	})
}

// A sidecar that does not read loses its session; the others do not notice.
func TestASlowReaderHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 1, 1_000_000, limiter.Second)
		l := lead(t, &memoryTerms{}, publishing(p))
		defer l.end()
		slow := l.connect(pod("shop", "slow"), "1")
		defer slow.close()
		other := l.connect(pod("shop", "other"), "1")
		defer other.close()
		other.config()

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for ctx.Err() == nil {
				request := &fleetpb.LeaseRequest{Id: 1, Key: &fleetpb.Key{Namespace: "shop", Policy: "checkout", Limit: "all"}, Min: 1, Want: 1}
				if slow.stream.Send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Lease{Lease: request}}) != nil {
					return
				}
			}
		}()
		time.Sleep(time.Second) // the slow one's messages are stuck, and a window begins that is served
		began := time.Now()
		if reply := other.lease(p, p.Limits[0]); reply.GetGranted() != 1 {
			t.Errorf("reply = %v, want one unit", reply)
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the other sidecar waited %s", waited)
		}
		for range 1 + stallTimeout/time.Second {
			time.Sleep(time.Second)
			other.report()
		}
		if l.present.Load().sessions.of("slow-uid") != nil {
			t.Error("the slow sidecar still has its session")
		}
		if got := status.Code(slow.failure()); got != codes.ResourceExhausted {
			t.Errorf("code = %v, want %v", got, codes.ResourceExhausted)
		}
	})
}

func TestNobodyIsServedBeforeTheTermBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t, nil, publishing(), func(c *Config) { c.Terms = noTerms{} })
		l.start()
		time.Sleep(10 * time.Second)
		if got := l.Observe("shop", "checkout"); got.Term != 0 {
			t.Errorf("term = %d, want none", got.Term)
		}
		l.Refresh("shop")
		id := pod("shop", "web-0")
		s := l.dial(tokenOf(id))
		defer s.close()
		s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: helloOf(id, "1")}})
		if got := status.Code(s.failure()); got != codes.Unavailable {
			t.Errorf("code = %v, want %v", got, codes.Unavailable)
		}
		l.end()
	})
}

// noTerms is a TermStore that cannot be reached.
type noTerms struct{}

func (noTerms) Begin(context.Context, func() bool) (records.Handover, error) {
	return records.Handover{}, errNotSynced
}

func (noTerms) End(context.Context, records.Handover) error { return errNotSynced }

func (noTerms) Clear(context.Context, uint64) error { return errNotSynced }
