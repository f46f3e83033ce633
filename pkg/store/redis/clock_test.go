package redis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// TestAStoreThatForgotByAClockThatIsBehind asks a server for all of each window, whose
// clock is ahead, kills it and starts it by the right time. The caller then has asked before,
// or is another holder, which learns what the clock had shown, or comes after one that has
// asked before.
func TestAStoreThatForgotByAClockThatIsBehind(t *testing.T) {
	for name, c := range map[string]struct {
		args    []string
		durable bool                                        // counters
		after   bool                                        // another holder asks, after the same asked once
		heard   func(reached limiter.Instant) store.Reached // another holder, that has just begun; nil: the same
		refusal limiter.Reason
	}{
		"without persistence":            {refusal: limiter.ClockBehind},
		"with an AOF":                    {args: []string{"--appendonly", "yes", "--appendfsync", "always"}, refusal: limiter.ClockBehind},
		"another holder, after the same": {after: true, refusal: limiter.Amnesia},
		"another holder, after the same, of durable counters": {after: true, durable: true, refusal: limiter.Amnesia},
		"another holder, before the clock has caught up": {
			heard:   func(reached limiter.Instant) store.Reached { return store.Reached{Now: reached} },
			refusal: limiter.ClockBehind,
		},
		"another holder, when the clock has caught up": {
			heard:   func(reached limiter.Instant) store.Reached { return store.Reached{Now: 1, Doubtful: reached} },
			refusal: limiter.Amnesia,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for a clock
			const ahead = 3 * time.Second
			clock := redistest.NewClock(t)
			clock.Set(ahead)
			server := clock.Start(c.args...)
			s := dial(t, server)
			p := perWindow(10, 200*limiter.Millisecond)
			p.Retention.Durable = c.durable
			granted := map[int64]int64{} // by window
			ask := func(span time.Duration) (reasons map[limiter.Reason]int) {
				reasons = map[limiter.Reason]int{}
				for end := time.Now().Add(span); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
					res := apply(t, s, counterOf("a"), p, limiter.Command{Min: 1, Want: 10})
					reasons[res.Reason]++
					granted[res.Windows.Open[0].Index] += res.Granted
				}
				return reasons
			}
			ask(time.Second)
			if len(granted) < 3 {
				t.Fatalf("%d windows were served before: the test shows nothing", len(granted))
			}
			var floor store.Floor // as the controller has one
			began := time.Now()
			floor.Observe(probe(t, s).Oldest, 0)
			server.Kill()
			clock.Set(0)
			server.Restart()
			if c.after {
				if res := apply(t, s, counterOf("a"), p, lease); res.Granted > 0 {
					t.Fatalf("the holder that knows better is granted %d", res.Granted)
				}
				s = dial(t, server)
			}
			if c.heard != nil {
				s = dial(t, server)
				s.Reached(c.heard(floor.At(int64(time.Since(began)))))
			}
			if reasons := ask(ahead + 700*time.Millisecond); reasons[c.refusal] < 50 || reasons[limiter.Granted] == 0 {
				t.Errorf("afterwards the answers are %v, want %d until the clock has caught up, and then grants", reasons, c.refusal)
			}
			for window, sum := range granted {
				if sum > 10 {
					t.Errorf("window %d was granted %d of 10", window, sum)
				}
			}
		})
	}
}

// TestAClockThatIsAheadForAMoment spends a window, lets the server's clock run ahead
// by several and back, and asks for more.
func TestAClockThatIsAheadForAMoment(t *testing.T) {
	const keys = 20 // of several partitions
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, s *redis.Store)
		reason    limiter.Reason
	}{
		"nobody asks": {func(*testing.T, *redis.Store) {}, limiter.Exhausted},
		"ended counters are dropped": {func(t *testing.T, s *redis.Store) {
			for range 64 {
				refresh(t, s)
			}
		}, limiter.ClockBehind},
		"others ask": {func(t *testing.T, s *redis.Store) {
			for i := range 200 {
				apply(t, s, counterOf(fmt.Sprint("other ", i)), perWindow(5, limiter.MinWindow), lease)
			}
		}, limiter.ClockBehind},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for a server's housekeeping
			clock := redistest.NewClock(t)
			server := clock.Start()
			s := dial(t, server)
			p := month(born(t, s, limiter.Retention{}))
			for i := range keys {
				if res := apply(t, s, counterOf(fmt.Sprint(i)), p, limiter.Command{Min: 10, Want: 10}); res.Granted != 10 {
					t.Fatalf("counter %d: got %v", i, res.Reason)
				}
			}
			clock.Set(70 * 24 * time.Hour)
			<-time.After(time.Second) // a server looks for what has expired ten times a second
			c.meanwhile(t, dial(t, server))
			clock.Set(0)
			another := dial(t, server) // which knows nothing of what the clock showed
			for i := range keys {
				if res := apply(t, another, counterOf(fmt.Sprint(i)), p, lease); res.Granted > 0 || res.Reason != c.reason {
					t.Errorf("counter %d is granted %d of a window that was spent (%v), want %v", i, res.Granted, res.Reason, c.reason)
				}
			}
		})
	}
}
