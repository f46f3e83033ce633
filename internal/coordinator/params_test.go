package coordinator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

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
