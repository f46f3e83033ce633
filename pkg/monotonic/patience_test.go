package monotonic

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

func TestWithinEndsAfterItsTime(t *testing.T) {
	for _, d := range []time.Duration{1, 3, time.Millisecond, 100 * time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ctx, cancel := Within(t.Context(), d)
			defer cancel()
			if at, ok := ctx.Deadline(); !ok || at.Sub(began) != d {
				t.Errorf("%v: the deadline comes after %v, %v", d, at.Sub(began), ok)
			}
			<-ctx.Done()
			if took := time.Since(began); took < d-hops || took > d+hops {
				t.Errorf("%v: ended after %v", d, took)
			}
			if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v: ended by %v", d, err)
			}
		})
	}
}

func TestWithinEndsWithItsParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			parent func() (context.Context, context.CancelFunc)
			want   error
		}{
			"cancelled":   {func() (context.Context, context.CancelFunc) { return context.WithCancel(t.Context()) }, context.Canceled},
			"out of time": {func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Second) }, context.DeadlineExceeded},
		} {
			parent, end := tc.parent()
			ctx, cancel := Within(parent, time.Minute)
			if _, ok := parent.Deadline(); ok {
				time.Sleep(time.Second)
				if at, _ := ctx.Deadline(); time.Since(at) != 0 {
					t.Errorf("%s: the deadline is not that of the parent", name)
				}
			} else {
				end()
			}
			<-ctx.Done()
			if err := ctx.Err(); !errors.Is(err, tc.want) {
				t.Errorf("%s: ended by %v", name, err)
			}
			cancel()
			end()
		}
	})
}

func TestCancelEndsWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := Within(t.Context(), time.Second)
		time.Sleep(time.Second / 2)
		cancel()
		<-ctx.Done()
		time.Sleep(time.Hour)
		if err := ctx.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("ended by %v", err)
		}
	})
}

// A reply waits behind goroutines that keep the only processor busy for much longer than the
// time-out. A context of the clock's has ended by then.
func TestWithinWaitsForAReplyThatHasArrived(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const d = 20 * time.Millisecond
	for starved := false; !starved; { // the race detector has goroutines run in any order
		plain, end := context.WithTimeout(t.Context(), d)
		ctx, cancel := Within(t.Context(), d)
		for range 30 {
			go func() {
				for until := time.Now().Add(d / 4); time.Now().Before(until); {
				}
			}()
		}
		replied := make(chan struct{})
		go func() {
			defer close(replied)
			starved = plain.Err() != nil
			if err := ctx.Err(); err != nil {
				t.Errorf("the call was given up: %v", err)
			}
		}()
		go func() {}() // the goroutine that was begun last is the next to run, and not the one above
		<-replied
		cancel()
		end()
	}
}
