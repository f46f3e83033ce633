package lane_test

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/store/lane"
)

// A road is a lane and what it sends over. Each trip takes the time in took.
type road struct {
	*lane.Lane[int]
	took  time.Duration
	calls sync.WaitGroup // that send sends

	mu    sync.Mutex
	trips [][]int // guarded by mu
	now   int     // under way; guarded by mu
	most  int     // of those at once; guarded by mu
}

func (r *road) carry(ctx context.Context, calls []int) {
	r.mu.Lock()
	r.trips = append(r.trips, slices.Clone(calls))
	r.now++
	r.most = max(r.most, r.now)
	r.mu.Unlock()
	select {
	case <-time.After(r.took):
	case <-ctx.Done():
	}
	r.mu.Lock()
	r.now--
	r.mu.Unlock()
}

// drive runs f with a road, in a bubble.
func drive(t *testing.T, took, patience time.Duration, f func(t *testing.T, r *road)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &road{took: took}
		r.Lane = lane.New(patience, r.carry)
		f(t, r)
	})
}

// send sends calls from first on, one after the other, each from a goroutine of its own.
func (r *road) send(t *testing.T, first, n int) {
	t.Helper()
	for i := range n {
		r.calls.Go(func() {
			if err := r.Send(t.Context(), first+i); err != nil {
				t.Errorf("call %d: %v", first+i, err)
			}
		})
		synctest.Wait()
	}
}

// finish waits for the calls that send sent, and compares the trips.
func (r *road) finish(t *testing.T, want ...[]int) {
	t.Helper()
	r.calls.Wait()
	if !reflect.DeepEqual(r.trips, want) {
		t.Errorf("the trips were %v, want %v", r.trips, want)
	}
}

func numbers(first, n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = first + i
	}
	return list
}

func TestCallsThatComeMeanwhileTravelTogether(t *testing.T) {
	drive(t, time.Millisecond, lane.Patience, func(t *testing.T, r *road) {
		start := time.Now()
		r.send(t, 0, 1+lane.MaxShared+2)
		if n := r.Waiting(); n != lane.MaxShared+2 {
			t.Errorf("%d calls wait, want %d", n, lane.MaxShared+2)
		}
		r.finish(t, []int{0}, numbers(1, lane.MaxShared), numbers(1+lane.MaxShared, 2))
		if r.most != 1 {
			t.Errorf("%d trips were under way at once, want 1", r.most)
		}
		if took := time.Since(start); took != 3*r.took {
			t.Errorf("three trips took %v", took)
		}
		r.send(t, 100, 1)
		if r.Waiting() != 0 {
			t.Error("a call waits although none is under way")
		}
		r.calls.Wait()
	})
}

// TestCallsThatAreReadyTravelTogether lets calls come at once to a lane that is idle. The
// scheduler may run the first one on before the others, now and then.
func TestCallsThatAreReadyTravelTogether(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const calls, tries = 4, 100
	together := 0
	for range tries {
		drive(t, time.Millisecond, lane.Patience, func(t *testing.T, r *road) {
			for i := range calls {
				r.calls.Go(func() {
					if err := r.Send(t.Context(), i); err != nil {
						t.Errorf("call %d: %v", i, err)
					}
				})
			}
			r.calls.Wait()
			if len(r.trips) == 1 && len(r.trips[0]) == calls {
				together++
			}
		})
	}
	if together == 0 {
		t.Errorf("in %d tries %d calls never shared the first round trip", tries, calls)
	}
}

// TestALeadingCallIsSentOnce lets others go beside a call that leads and has not begun.
func TestALeadingCallIsSentOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 100 {
		drive(t, time.Millisecond, 0, func(t *testing.T, r *road) {
			for i := range 2 * lane.MaxFlights {
				r.calls.Go(func() {
					if err := r.Send(t.Context(), i); err != nil {
						t.Errorf("call %d: %v", i, err)
					}
				})
			}
			r.calls.Wait()
			sent := slices.Sorted(slices.Values(slices.Concat(r.trips...)))
			if !slices.Equal(sent, numbers(0, 2*lane.MaxFlights)) || r.most > lane.MaxFlights {
				t.Errorf("the trips were %v, %d at once", r.trips, r.most)
			}
			start := time.Now()
			if r.send(t, 100, 1); r.Waiting() != 0 {
				t.Error("a call waits although none is under way")
			}
			if r.calls.Wait(); time.Since(start) != r.took {
				t.Errorf("a call alone took %v", time.Since(start))
			}
		})
	}
}

// TestATripThatHangsKeepsNobody lets the first trips take for ever, as far as the others see.
func TestATripThatHangsKeepsNobody(t *testing.T) {
	drive(t, time.Hour, lane.Patience, func(t *testing.T, r *road) {
		want := [][]int{{0}, {10, 11}, {20, 21}}
		r.send(t, 0, 1)
		for trip := 1; trip < lane.MaxFlights; trip++ {
			r.send(t, 10*trip, 1)
			time.Sleep(lane.Patience)
			r.send(t, 10*trip+1, 1)
		}
		time.Sleep(lane.Patience)
		r.send(t, 100, 1)
		if !reflect.DeepEqual(r.trips, want) || r.Waiting() != 1 {
			t.Errorf("the trips are %v and %d calls wait, want %v and one", r.trips, r.Waiting(), want)
		}
		r.calls.Wait()
		if r.most != lane.MaxFlights {
			t.Errorf("%d trips were under way at once, want %d", r.most, lane.MaxFlights)
		}
	})
}

func TestACallThatIsCancelledWhileItWaitsIsNotSent(t *testing.T) {
	drive(t, time.Second, time.Hour, func(t *testing.T, r *road) {
		r.send(t, 0, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := r.Send(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		r.send(t, 2, 1)
		r.finish(t, []int{0}, []int{2})
	})
}

// TestACallThatTravelsWithOthersIsCancelled: its caller waits no longer, and the others
// get their answer.
func TestACallThatTravelsWithOthersIsCancelled(t *testing.T) {
	drive(t, time.Second, time.Hour, func(t *testing.T, r *road) {
		r.send(t, 0, 2)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		start := time.Now()
		if err := r.Send(ctx, 2); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 1500*time.Millisecond {
			t.Errorf("after %v the error is %v", time.Since(start), err)
		}
		r.calls.Wait()
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("the others were answered after %v", took)
		}
		r.Wait()
	})
}

func TestClosingFailsTheCallsThatWait(t *testing.T) {
	drive(t, time.Second, time.Hour, func(t *testing.T, r *road) {
		r.send(t, 0, 1)
		ended := make(chan error, 1)
		go func() { ended <- r.Send(t.Context(), 1) }()
		synctest.Wait()
		r.Close()
		if err := <-ended; !errors.Is(err, lane.ErrClosed) {
			t.Errorf("the error of a call that waited is %v", err)
		}
		if err := r.Send(t.Context(), 2); !errors.Is(err, lane.ErrClosed) {
			t.Errorf("the error of a call that came later is %v", err)
		}
		r.Beside(func() { t.Error("a lane that is closed begins something") })
		r.finish(t, []int{0})
		r.Wait()
	})
}

func TestWaitIsForCallsThatRunBeside(t *testing.T) {
	drive(t, time.Second, time.Hour, func(t *testing.T, r *road) {
		start := time.Now()
		r.Beside(func() { time.Sleep(time.Minute) })
		r.Close()
		r.Wait()
		if took := time.Since(start); took != time.Minute {
			t.Errorf("it waited for %v, want a minute", took)
		}
	})
}
