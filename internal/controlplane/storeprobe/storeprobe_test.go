package storeprobe

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// evicting is what a store says that keeps neither counter well.
var evicting = store.Facts{
	Now:      7,
	Volatile: store.Keeping{Guarantee: store.Guarantee{Grade: store.BestEffort, Reason: "it evicts"}, Memories: []limiter.MemoryID{1}},
	Durable:  store.Keeping{Guarantee: store.Guarantee{Grade: store.HardExceptSplitBrain, Reason: "it has replicas"}, Memories: []limiter.MemoryID{2}},
	Lossless: true,
}

// A fakeServer counts what it is asked.
type fakeServer struct {
	backend.Backend
	probed, closed *int
	err            error
}

func (s fakeServer) Probe(context.Context) (store.Facts, error) {
	*s.probed++
	if s.err != nil {
		return store.Facts{}, s.err
	}
	return evicting, nil
}

func (s fakeServer) Close() error {
	*s.closed++
	return nil
}

func TestAnswersAreRememberedForAMoment(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	outage := errors.New("no route to host")
	up, down := policy.Store{Type: policy.RedisStore, Address: "up:6379"}, policy.Store{Type: policy.RedisStore, Address: "down:6379"}
	asked, closed := map[policy.Store]*int{up: new(int), down: new(int)}, 0
	p := newProber(clock, func(of policy.Store, _ map[string][]byte) (backend.Backend, error) {
		s := fakeServer{probed: asked[of], closed: &closed}
		if of == down {
			s.err = outage
		}
		return s, nil
	})
	probe := func(of policy.Store, wantErr error) {
		t.Helper()
		got, err := p.Probe(t.Context(), of, nil)
		if (err != nil) != (wantErr != nil) {
			t.Errorf("Probe(%s): error %v, want %v", of.Address, err, wantErr)
		}
		want := evicting
		if wantErr != nil {
			want = store.Facts{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Probe(%s) (-want +got):\n%s", of.Address, diff)
		}
	}
	for range 3 {
		probe(up, nil)
		probe(down, outage)
	}
	if *asked[up] != 1 || *asked[down] != 1 {
		t.Errorf("asked %d and %d times while the answers stand, want once", *asked[up], *asked[down])
	}
	clock.SetTime(clock.Now().Add(freshFor))
	probe(up, nil)
	if *asked[up] != 2 {
		t.Errorf("asked %d times after the answer was stale, want 2", *asked[up])
	}
	if len(p.answers) != 1 {
		t.Errorf("%d answers are kept, want only the fresh one", len(p.answers))
	}
	if closed != 3 {
		t.Errorf("%d connections closed, want 3", closed)
	}
}

func TestARealServer(t *testing.T) {
	of := policy.Store{Type: policy.RedisStore, Address: redistest.Start(t).Addr}
	p := New(backend.Opener{}.Open)
	got, err := p.Probe(t.Context(), of, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Volatile.Guarantee.Grade != store.Hard {
		t.Errorf("Probe = %+v, want the grade Hard of what it may forget", got)
	}
	now, err := p.Clock(t.Context(), of, nil)
	if off := limiter.Instant(time.Now().UnixMicro()).Sub(now); err != nil || off < 0 || off > limiter.Second {
		t.Errorf("the clock is %dµs behind that of this machine, which it is: %v", off, err)
	}
}

// A settable server notes what is set back, and has a clock.
type settable struct {
	backend.Backend
	set *[]string
	err error
}

func (s settable) Reset(_ context.Context, scope store.Scope, hash *string) (int, error) {
	*s.set = append(*s.set, scope.Limit+"="+ptr.Deref(hash, "all"))
	return 1, s.err
}

func (s settable) Apply(_ context.Context, _ store.Key, _ limiter.Params, c limiter.Command) (limiter.Result, error) {
	if c.Op != limiter.Peek {
		return limiter.Result{}, errors.New("it changes something")
	}
	return limiter.Result{Now: 7}, nil
}

func (settable) Close() error { return nil }

func TestReset(t *testing.T) {
	away := errors.New("away")
	for _, err := range []error{nil, away} {
		var set []string
		p := New(func(policy.Store, map[string][]byte) (backend.Backend, error) {
			return settable{set: &set, err: err}, nil
		})
		scope := store.Scope{Limit: "all"}
		var want limiter.Instant
		if err == nil {
			want = 7
		}
		for _, hash := range []*string{nil, new("alice")} {
			if at, got := p.Reset(t.Context(), policy.Store{}, nil, scope, hash); at != want || (got != nil) != (err != nil) {
				t.Errorf("set back at %d, %v; want %d, %v", at, got, want, err)
			}
		}
		if diff := cmp.Diff([]string{"all=all", "all=alice"}, set); diff != "" {
			t.Errorf("set back (-want +got):\n%s", diff)
		}
	}
}

func TestNoServer(t *testing.T) {
	of := policy.Store{Type: policy.RedisStore, Address: filepath.Join(t.TempDir(), "nobody.sock")}
	if _, err := New(backend.Opener{}.Open).Probe(t.Context(), of, nil); err == nil {
		t.Error("a server that is not there gave a guarantee")
	}
	if now, err := New(backend.Opener{}.Open).Clock(t.Context(), of, nil); err == nil {
		t.Errorf("a server that is not there gave the time %d", now)
	}
}

// TestWhatClocksHadShown has the clock of a store go on, be set back, and catch up.
func TestWhatClocksHadShown(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	of := policy.Store{Type: policy.RedisStore, Address: "redis:6379"}
	var now limiter.Instant
	var lost limiter.MemoryID
	p := newProber(clock, func(policy.Store, map[string][]byte) (backend.Backend, error) {
		return showing{now: &now, lost: &lost}, nil
	})
	after := func(d time.Duration, shows, most limiter.Instant) {
		t.Helper()
		clock.SetTime(clock.Now().Add(d))
		now = shows
		if _, err := p.Facts(t.Context(), of, nil); err != nil {
			t.Fatal(err)
		}
		if got := p.Reached(of).Now; got > most || got < most-most/500 {
			t.Errorf("after %v its clock shows %d, and certainly reached %d, want %d", d, shows, got, most)
		}
	}
	if p.Reached(of) != (store.Reached{}) {
		t.Error("something is known of a store that was never asked")
	}
	after(0, 1e9, 1e9)
	clock.SetTime(clock.Now().Add(100 * time.Second))
	if got := p.Reached(of).Now; got < 1099e6 || got > 1100e6 {
		t.Errorf("after 100 s: %d", got)
	}
	after(100*time.Second, 5e8, 1200e6) // set back
	after(100*time.Second, 6e8, 1200e6) // and not caught up
	after(600*time.Second, 1200e6, 1200e6)
	after(100*time.Second, 1300e6, 1300e6)
	if got := p.Reached(of).Doubtful; got != 0 {
		t.Errorf("windows before %d are doubtful of a store that lost nothing", got)
	}
	lost = 1
	after(100*time.Second, 1300e6, 1400e6)
	after(100*time.Second, 1400e6, 1400e6)
	if got := p.Reached(of).Doubtful; got < 1400e6 || got > 1401e6 {
		t.Errorf("windows before %d are doubtful", got)
	}

	for i := range maxFloors {
		clock.SetTime(clock.Now().Add(time.Second))
		p.saw(policy.Store{Address: fmt.Sprint(i)}, store.Facts{Oldest: 1}, p.local())
	}
	if len(p.floors) != maxFloors || p.Reached(of).Now != 0 {
		t.Errorf("%d servers are remembered", len(p.floors))
	}
}

// TestAShortNameIsAServerOfItsNamespace: two namespaces each have a Service redis.
func TestAShortNameIsAServerOfItsNamespace(t *testing.T) {
	in := func(namespace string) policy.Store {
		p := &v1alpha1.RateLimitPolicy{}
		p.Namespace = namespace
		p.Spec.Store.Store = v1alpha1.Store{Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{Address: "redis:6379"}}
		return translate.Wanted(p)
	}
	clocks := map[string]limiter.Instant{"redis.shop.svc:6379": 7e9, "redis.cart.svc:6379": 3e9}
	p := newProber(clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0)), func(of policy.Store, _ map[string][]byte) (backend.Backend, error) {
		now := clocks[of.Address]
		return showing{now: &now, lost: new(limiter.MemoryID)}, nil
	})
	for range 2 { // the second time from memory
		for address, shows := range clocks {
			of := in(strings.Split(address, ".")[1])
			facts, err := p.Probe(t.Context(), of, nil)
			if err != nil || facts.Oldest != shows || p.Reached(of).Now != shows || len(p.Remembered(of)) != 0 {
				t.Errorf("%s: the clock shows %d and reached %d (%v), want %d", address, facts.Oldest, p.Reached(of).Now, err, shows)
			}
		}
	}
}

// showing is a server whose clock shows what it is set to.
type showing struct {
	backend.Backend
	now  *limiter.Instant
	lost *limiter.MemoryID
}

func (s showing) Probe(context.Context) (store.Facts, error) {
	return store.Facts{
		Now: *s.now + 7, Oldest: *s.now, Volatile: store.Keeping{Memories: []limiter.MemoryID{1 + *s.lost}},
	}, nil
}

func (showing) Close() error { return nil }
