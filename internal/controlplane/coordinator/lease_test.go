package coordinator

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/leadership"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

func TestLeasesAreOfWhatWasPublishedToThePod(t *testing.T) {
	shop := limited("shop", 3, 10, limiter.Second)
	bank := limited("bank", 3, 10, limiter.Second)
	bank.Name = "transfer"
	onRedis := limited("shop", 1, 10, limiter.Second)
	onRedis.Name, onRedis.Store = "on-redis", policy.Store{Type: policy.RedisStore, Address: "redis:6379"}
	perIP := keyed(limited("shop", 1, 10, limiter.Second), 2)
	perIP.Name = "per-ip"
	drawing := limited("shop", 1, 10, limiter.Second)
	drawing.Name, drawing.Limits[0].Budget = "with-budget", &policy.BudgetRef{ID: "b", Name: "b"}
	of := func(p policy.Policy) policy.Policy { return p }

	tests := map[string]struct {
		policy policy.Policy
		change func(*fleetpb.LeaseRequest)
		want   string // part of the error; empty for a grant
		outage bool   // the holder and the controller may know different versions
	}{
		"what was published":                            {policy: of(shop)},
		"the limit without a key of a policy with keys": {policy: of(perIP)},
		"a policy of another namespace":                 {policy: of(bank), want: "not of this pod's namespace"},
		"another namespace's policy by its name": {
			policy: of(shop), change: func(r *fleetpb.LeaseRequest) { r.Key.Policy = "transfer" }, want: "does not apply to this pod", outage: true,
		},
		"a limit that does not exist": {
			policy: of(shop), change: func(r *fleetpb.LeaseRequest) { r.Key.Limit = "none" }, want: "does not apply to this pod", outage: true,
		},
		"a name with a slash": {
			policy: of(shop), change: func(r *fleetpb.LeaseRequest) { r.Key.Namespace = "shop/../bank" }, want: "not of this pod's namespace",
		},
		"no key at all": {
			policy: of(shop), change: func(r *fleetpb.LeaseRequest) { r.Key = nil }, want: "not of this pod's namespace",
		},
		"rates of its own": {
			policy: of(shop), change: func(r *fleetpb.LeaseRequest) { r.Rates[0].Limit = 1_000_000 }, want: "has other rates",
		},
		"more rates than were published": {
			policy: of(shop), change: func(r *fleetpb.LeaseRequest) { r.Rates = append(r.Rates, r.Rates[0]) }, want: "has other rates",
		},
		"a generation that is not published yet": {
			policy: of(shop), change: func(r *fleetpb.LeaseRequest) { r.Generation = 4 }, want: "not known to this controller yet", outage: true,
		},
		"a counter of a limit without a key": {
			policy: of(shop), change: func(r *fleetpb.LeaseRequest) { r.Key.Hash = store.HashValue("x") }, want: "has no counter",
		},
		"a counter that is not a hash": {
			policy: of(perIP), change: func(r *fleetpb.LeaseRequest) { r.Key.Hash = "x" }, want: "has no counter",
		},
		"a policy that uses another store":           {policy: of(onRedis), want: "does not keep its counters in this controller", outage: true},
		"a budget without a part in this controller": {policy: of(drawing), want: "takes no part", outage: true},
		"an operation that does not exist": {
			policy: of(shop), change: func(r *fleetpb.LeaseRequest) { r.Op = 256 }, want: "op 256",
		},
		"a reset, which is not a holder's": {
			policy: of(shop), change: func(r *fleetpb.LeaseRequest) { r.Op = int32(limiter.Reset) }, want: fmt.Sprintf("op %d", limiter.Reset),
		},
		"a tenant that is not a hash": {
			policy: of(shop), change: func(r *fleetpb.LeaseRequest) { r.Tenant = "gold" }, want: `tenant hash "gold"`,
		},
		"nothing": {
			policy: of(shop), change: func(r *fleetpb.LeaseRequest) { r.Min, r.Want = 0, 0 }, want: "must be at least 1",
		},
		"less than nothing": {
			policy: of(shop), change: func(r *fleetpb.LeaseRequest) { r.Min, r.Want = -5, -5 }, want: "must be at least 1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := lead(t, &memoryTerms{}, publishing(bank, shop, onRedis, perIP, drawing))
				defer l.end()
				s := l.connect(pod("shop", "web-0"), "1")
				defer s.close()
				s.config()
				time.Sleep(time.Second)
				if tc.change == nil {
					tc.change = func(*fleetpb.LeaseRequest) {}
				}
				reply := s.lease(tc.policy, tc.policy.Limits[0], tc.change)
				switch {
				case tc.want == "" && (reply.GetError() != "" || reply.GetGranted() != 1 || reply.GetTerm() != 1):
					t.Errorf("reply = %v, want one unit of term 1", reply)
				case tc.want != "" && reply.GetDefect() == tc.outage:
					t.Errorf("reply = %v, want it to be an outage: %t", reply, tc.outage)
				case tc.outage && !strings.HasPrefix(reply.GetError(), "the controller's store: ") && tc.policy.Name != drawing.Name:
					t.Errorf("reply = %v, want it to name the store", reply)
				case reply.GetOfLimit() != tc.outage:
					t.Errorf("reply = %v, want it to speak for the limit alone: %t", reply, tc.outage)
				case tc.want != "" && (!strings.Contains(reply.GetError(), tc.want) || reply.GetGranted() != 0):
					t.Errorf("reply = %v, want an error with %q", reply, tc.want)
				}
			})
		})
	}
}

func TestOneNamespaceCannotDrainAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop, bank := limited("shop", 1, 10, limiter.Second), limited("bank", 1, 10, limiter.Second)
		l := lead(t, &memoryTerms{}, publishing(bank, shop))
		defer l.end()
		a := l.connect(pod("shop", "web-0"), "1")
		defer a.close()
		a.config()
		b := l.connect(pod("bank", "web-0b"), "1")
		defer b.close()
		b.config()
		time.Sleep(time.Second)
		a.lease(shop, shop.Limits[0], want(10))
		a.lease(bank, bank.Limits[0], want(10))
		if reply := b.lease(bank, bank.Limits[0], want(10)); reply.GetGranted() != 10 {
			t.Errorf("reply = %v, want all ten units", reply)
		}
	})
}

func TestSessionsShareALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 1, 10, limiter.Second)
		l := lead(t, &memoryTerms{}, publishing(p))
		defer l.end()
		var granted int64
		time.Sleep(time.Second)
		for i := range 3 {
			s := l.connect(pod("shop", fmt.Sprint("web-", i)), "1")
			defer s.close()
			s.config()
			granted += s.lease(p, p.Limits[0], want(4)).GetGranted()
		}
		if granted != 10 {
			t.Errorf("granted %d units, want 10", granted)
		}
	})
}

func TestAReturnIsGrantedAgainAndNotAnswered(t *testing.T) {
	p := limited("shop", 1, 10, limiter.Second)
	withOne(t, p, func(t *testing.T, l *leader, s *sidecar) {
		reply := s.lease(p, p.Limits[0], want(10))
		s.giveBack(4, reply.GetWindows())
		if reply := s.lease(p, p.Limits[0], want(10)); reply.GetGranted() != 4 {
			t.Errorf("reply = %v, want the four units that were returned", reply)
		}
	})
}

// Once a holder asked with the newer generation, the older one is refused.
func TestALowerGenerationIsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := limited("shop", 1, 10, limiter.Second), limited("shop", 2, 20, limiter.Second)
		l := lead(t, &memoryTerms{}, publishing(before))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		l.policies.set(true, after)
		l.Refresh("shop")
		s.config()
		time.Sleep(time.Second)
		if reply := s.lease(before, before.Limits[0]); reply.GetReason() != int32(limiter.Granted) {
			t.Errorf("before anybody asked with the newer one: reply = %v, want a grant", reply)
		}
		s.lease(after, after.Limits[0])
		if reply := s.lease(before, before.Limits[0]); reply.GetReason() != int32(limiter.StaleGeneration) || reply.GetGranted() != 0 {
			t.Errorf("reply = %v, want StaleGeneration", reply)
		}
	})
}

func TestNothingIsGrantedBeforeThePoliciesAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 1, 10, limiter.Second)
		l := lead(t, &memoryTerms{}, &policies{})
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		if reply := s.lease(p, p.Limits[0]); reply.GetError() == "" || reply.GetOfLimit() {
			t.Errorf("reply = %v, want an error of every limit", reply)
		}
	})
}

// TestALeaseWaitsForThePoliciesOfItsSession: an error would be taken for an outage
// of the store and cut the holder off for a while, just when it has started.
func TestALeaseWaitsForThePoliciesOfItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 1, 10, limiter.Second)
		slow := publishing(p)
		slow.takes = configTime / 2
		l := lead(t, &memoryTerms{}, slow)
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		before := time.Now()
		if reply := s.lease(p, p.Limits[0]); reply.GetError() != "" {
			t.Errorf("reply = %v, want a decision", reply)
		}
		if took := time.Since(before); took > slow.takes {
			t.Errorf("the lease took %v, though the policies were known after %v", took, slow.takes)
		}
	})
}

// TestValuesBeyondTheBoundShareACounter: none is refused while that has something left.
func TestValuesBeyondTheBoundShareACounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const maxKeys, limit = 3, 10
		p := keyed(limited("shop", 1, limit, limiter.Second), maxKeys)
		l := lead(t, &memoryTerms{}, publishing(p))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		time.Sleep(time.Second)
		ask := func(value int) *fleetpb.LeaseReply {
			return s.lease(p, p.Limits[0], func(r *fleetpb.LeaseRequest) { r.Key.Hash = store.HashValue(fmt.Sprint(value)) })
		}
		granted := 0
		for i := range 100 {
			switch reply := ask(i); {
			case reply.GetError() != "":
				t.Fatalf("reply = %v, want no error: it would cut off the other counters", reply)
			case reply.GetReason() == int32(limiter.Granted):
				granted++
			}
		}
		if granted != maxKeys+limit {
			t.Errorf("%d values were served, want %d on counters of their own and %d on a shared one", granted, maxKeys, limit)
		}
		if reply := ask(0); reply.GetGranted() == 0 {
			t.Errorf("reply = %v, want a known counter to be served", reply)
		}
		time.Sleep(time.Second) // the next window
		for range limit {
			if reply := ask(1000); reply.GetGranted() == 0 {
				t.Errorf("reply = %v, want a counter of its own in the place of an ended one", reply)
			}
		}
		if reply := ask(2000); reply.GetGranted() == 0 {
			t.Errorf("reply = %v, want another one", reply)
		}
	})
}

// A holder that knows the store's clock to have been ahead is refused until it is there
// again, and nobody else.
func TestAHoldersFloorHoldsForItAlone(t *testing.T) {
	p := limited("shop", 1, 10, limiter.Second)
	withOne(t, p, func(t *testing.T, l *leader, s *sidecar) {
		floor := func(ahead time.Duration) func(*fleetpb.LeaseRequest) {
			at := time.Now().Add(ahead).UnixMicro()
			return func(r *fleetpb.LeaseRequest) { r.FloorMicros = at }
		}
		if reply := s.lease(p, p.Limits[0], floor(time.Minute)); reply.GetReason() != int32(limiter.ClockBehind) || reply.GetGranted() != 0 ||
			reply.GetRetryAfterMicros() != int64(60*limiter.Second) {
			t.Errorf("reply = %v, want nothing for a minute", reply)
		}
		for _, ahead := range []time.Duration{0, -time.Hour} {
			reply := s.lease(p, p.Limits[0], floor(ahead))
			if reply.GetGranted() != 1 || reply.GetClockMicros() != time.Now().UnixMicro() {
				t.Errorf("reply = %v, want a unit, at %d", reply, time.Now().UnixMicro())
			}
		}
		if reply := s.lease(p, p.Limits[0], floor(-100*365*24*time.Hour)); !reply.GetDefect() {
			t.Errorf("reply = %v, want a defect for an instant before 1970", reply)
		}
	})
}

func TestNothingIsGrantedOutsideTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := true
		p := limited("shop", 1, 10, limiter.Second)
		l := lead(t, &memoryTerms{}, publishing(p), func(c *Config) { c.Leadership = &lock{held: &held} })
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		time.Sleep(time.Second)
		if reply := s.lease(p, p.Limits[0]); reply.GetGranted() != 1 {
			t.Errorf("reply = %v, want one unit", reply)
		}
		held = false
		if reply := s.lease(p, p.Limits[0]); reply.GetGranted() != 0 || reply.GetError() == "" || reply.GetOfLimit() {
			t.Errorf("reply = %v, want an error of every limit", reply)
		}
	})
}

// A lock is held while held is true. It knows of a predecessor.
type lock struct {
	held        *bool
	predecessor time.Time
	clock       *memory.Clock
}

func (l *lock) Held() bool { return *l.held }

func (l *lock) Covers(limiter.Instant) bool { return *l.held }

func (l *lock) Past() (past leadership.Past) {
	if !l.predecessor.IsZero() {
		past.Served = limiter.Instant(l.predecessor.UnixMicro())
	}
	return past
}

func (l *lock) Clock() *memory.Clock {
	if l.clock == nil {
		l.clock = memory.NewClock(time.Now(), l.Past().Served)
	}
	return l.clock
}

const span = 4 * limiter.Second // less than a session may be silent

// by has a request name a counter and the rates that its holder works by.
func by(value string, rates ...limiter.Rate) func(*fleetpb.LeaseRequest) {
	return func(r *fleetpb.LeaseRequest) {
		r.Key.Hash = store.HashValue(value)
		r.Rates = nil
		for _, rate := range rates {
			r.Rates = append(r.Rates, rateTo(rate))
		}
	}
}

func TestSingleValuesAreWorkedByTheirOwnRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := keyed(limited("shop", 1, 10, span), 100)
		all, own := p.Limits[0].Rates[0], limiter.Rate{Limit: 30, Window: span}
		p.Limits[0].Overrides = []policy.Override{{Values: []policy.Value{{"10.0.0.1"}}, Rates: []limiter.Rate{own}}}
		gold := policy.JoinParts("10.0.0.1")
		l := lead(t, &memoryTerms{}, publishing(p))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		time.Sleep(5 * time.Second)
		if r := s.lease(p, p.Limits[0], by(gold, own), want(100)); r.GetGranted() != 30 || r.GetLimit() != 30 {
			t.Errorf("the value with its own rates: %v, want 30", r)
		}
		if r := s.lease(p, p.Limits[0], by("10.0.0.2", all), want(100)); r.GetGranted() != 10 || r.GetLimit() != 10 {
			t.Errorf("another value: %v, want 10", r)
		}
		if r := s.lease(p, p.Limits[0], by("10.0.0.2", own), want(100)); r.GetError() == "" || !r.GetDefect() {
			t.Errorf("another value that names those rates: %v, want a defect", r)
		}
		if r := s.lease(p, p.Limits[0], by(gold, all), want(100)); r.GetError() == "" {
			t.Errorf("the value without them: %v, want an error", r)
		}
	})
}

// TestNothingIsGrantedFromBeforeTheStoreTookOver: another store may have granted it.
func TestNothingIsGrantedFromBeforeTheStoreTookOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 1, 10, span)
		l := lead(t, &memoryTerms{}, publishing(p))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		time.Sleep(5 * time.Second)
		now, ok := l.Now()
		if !ok {
			t.Fatal("the leader knows no time")
		}
		p.Since = now
		l.policies.set(true, p)
		l.Refresh("shop")
		s.receiveConfig()
		r := s.lease(p, p.Limits[0], want(10))
		if r.GetGranted() != 0 || r.GetError() != "" || r.GetRetryAfterMicros() <= 0 {
			t.Fatalf("in the window that was open: %v, want nothing yet", r)
		}
		time.Sleep(time.Duration(r.GetRetryAfterMicros()) * time.Microsecond)
		if r := s.lease(p, p.Limits[0], want(10)); r.GetGranted() != 10 {
			t.Errorf("in the next one: %v, want 10", r)
		}
	})
}

func TestAReplyContainsAllThatTheStoreSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket, leaky := limited("shop", 1, 10, limiter.Second), limited("shop", 1, 10, limiter.Second)
		bucket.Name, leaky.Name = "bucket", "leaky"
		bucket.Limits[0].Algorithm, bucket.Limits[0].Rates[0].Burst = policy.TokenBucket, 25
		leaky.Limits[0].Algorithm, leaky.Limits[0].MaxDelay = policy.LeakyBucket, limiter.Second
		l := lead(t, &memoryTerms{}, publishing(bucket, leaky))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		time.Sleep(5 * time.Second)
		burst := func(r *fleetpb.LeaseRequest) { r.Rates[0].Burst = 25 }
		r := s.lease(bucket, bucket.Limits[0], burst, want(20))
		if limiter.Algorithm(r.GetAlgorithm()) != limiter.TokenBucket || r.GetGranted() != 20 || r.GetRemaining() != 5 ||
			r.GetLimit() != 25 || r.GetResetAfterMicros() != int64(2*limiter.Second) || r.GetDelayMicros() != 0 {
			t.Errorf("of a bucket: %v", r)
		}
		s.lease(leaky, leaky.Limits[0])
		r = s.lease(leaky, leaky.Limits[0])
		if limiter.Algorithm(r.GetAlgorithm()) != limiter.LeakyBucket || r.GetGranted() != 1 || r.GetDelayMicros() != int64(limiter.Second/10) {
			t.Errorf("of a queue: %v, want a delay of a tenth of a second", r)
		}
	})
}

// TestNobodyIsServedBeforeTheLeaderCaughtUp: what it knows may be older than what
// sidecars were sent.
func TestNobodyIsServedBeforeTheLeaderCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := make(chan error)
		terms := &memoryTerms{}
		l := newLeader(t, terms, publishing(limited("shop", 1, 10, limiter.Second)), func(c *Config) {
			c.CatchUp = func(ctx context.Context) error {
				select {
				case err := <-behind:
					return err
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		})
		l.start()
		defer l.end()
		if _, ok := l.Now(); ok || terms.left.Term != 0 {
			t.Fatal("it leads before it caught up")
		}
		behind <- errNotSynced
		synctest.Wait()
		if _, ok := l.Now(); ok {
			t.Error("it leads although it did not catch up")
		}
		close(behind)
		time.Sleep(2 * beginRetry)
		if _, ok := l.Now(); !ok {
			t.Error("it does not lead after it caught up")
		}
	})
}
