package backend

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// calls is a store that notes when it is refreshed, and then fails.
type calls struct{ at []time.Time }

func (c *calls) Refresh(context.Context) error {
	c.at = append(c.at, time.Now())
	return errors.New("unavailable")
}

func TestAStoreIsRefreshedAtOnceAndThenWithJitterWhateverFails(t *testing.T) {
	refusal := limiter.Result{RetryAfter: limiter.MaxWindow}
	grant := limiter.Result{Granted: 1, Remaining: 9, ExpiresIn: limiter.MaxWindow, ResetAfter: limiter.MaxWindow}
	last := grant
	last.Remaining = 0
	for name, tc := range map[string]struct {
		answer *limiter.Result // once, at the begin
		asked  bool            // all the time
		mean   time.Duration
	}{
		"nobody asks":               {nil, false, refreshIdle},
		"it is asked":               {&grant, true, refreshEvery},
		"it was asked":              {&grant, false, refreshIdle},
		"a refusal is remembered":   {&refusal, false, refreshEvery},
		"the last unit was granted": {&last, false, refreshEvery},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const rounds = 100
				start, made, u := time.Now(), &calls{}, newUsage()
				ctx, cancel := context.WithTimeout(t.Context(), rounds*tc.mean)
				defer cancel()
				take := limiter.Command{Op: limiter.Take, Min: 1, Want: 1}
				if tc.answer != nil {
					u.note(take, *tc.answer)
				}
				if tc.asked {
					go func() {
						for ctx.Err() == nil {
							u.note(take, *tc.answer)
							time.Sleep(time.Millisecond)
						}
					}()
				}
				keepUp(ctx, made, u)
				if took := time.Since(start); took != rounds*tc.mean {
					t.Errorf("ended after %v, want the end of its context", took)
				}
				if first := made.at[0].Sub(start); first != 0 {
					t.Errorf("the first refresh came after %v", first)
				}
				if n := len(made.at); n < rounds*3/4 || n > rounds*5/4 {
					t.Errorf("%d refreshes in %v", n, rounds*tc.mean)
				}
				waits := map[time.Duration]bool{}
				for i, at := range made.at[2:] { // the first two may be those of a store that was asked
					wait := at.Sub(made.at[i+1])
					waits[wait] = true
					if wait < tc.mean/2 || wait > tc.mean*3/2+time.Millisecond {
						t.Errorf("refresh %d came after %v", i+2, wait)
					}
				}
				if len(waits) < rounds/2 {
					t.Errorf("only %d different waits: a fleet would call in step", len(waits))
				}
				time.Sleep(time.Millisecond)
			})
		})
	}
}

// TestAStoreThatIsAskedAgainIsRefreshedSoon: what it refuses then is remembered.
func TestAStoreThatIsAskedAgainIsRefreshedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made, u := &calls{}, newUsage()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go keepUp(ctx, made, u)
		time.Sleep(time.Second)
		u.note(limiter.Command{Op: limiter.Take, Min: 1, Want: 1}, limiter.Result{RetryAfter: limiter.MaxWindow})
		time.Sleep(refreshEvery * 3 / 2)
		synctest.Wait()
		if n := len(made.at); n < 2 {
			t.Errorf("%d refreshes", n)
		}
	})
}

// TestARefusalIsRememberedUntilMoreCanBeHad, and a shorter one does not end that.
func TestARefusalIsRememberedUntilMoreCanBeHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, take := newUsage(), limiter.Command{Op: limiter.Take, Min: 1, Want: 1}
		u.note(take, limiter.Result{RetryAfter: 60 * limiter.Second})
		u.note(take, limiter.Result{RetryAfter: limiter.Second})
		time.Sleep(time.Minute - 1)
		if !u.remembers() {
			t.Error("forgotten too early")
		}
		time.Sleep(time.Nanosecond)
		if u.remembers() {
			t.Error("still remembered")
		}
	})
}
