package lane_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/store/lane"
)

// A road is what a lane sends over. Each trip takes the time in took.
type road struct {
	took time.Duration

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

// send sends calls from first on, one after the other, each from a goroutine of its own.
func send(t *testing.T, l *lane.Lane[int], all *sync.WaitGroup, first, n int) {
	t.Helper()
	for i := range n {
		all.Go(func() {
			if err := l.Send(t.Context(), first+i); err != nil {
				t.Errorf("call %d: %v", first+i, err)
			}
		})
		synctest.Wait()
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
	synctest.Test(t, func(t *testing.T) {
		r := &road{took: time.Millisecond}
		l := lane.New(lane.Patience, r.carry)
		var all sync.WaitGroup
		start := time.Now()
		send(t, l, &all, 0, 1+lane.MaxShared+2)
		if n := l.Waiting(); n != lane.MaxShared+2 {
			t.Errorf("%d calls wait, want %d", n, lane.MaxShared+2)
		}
		all.Wait()
		want := [][]int{{0}, numbers(1, lane.MaxShared), numbers(1+lane.MaxShared, 2)}
		if !reflect.DeepEqual(r.trips, want) || r.most != 1 {
			t.Errorf("the trips were %v, %d at once, want %v", r.trips, r.most, want)
		}
		if took := time.Since(start); took != 3*r.took {
			t.Errorf("three trips took %v", took)
		}
		send(t, l, &all, 100, 1)
		if l.Waiting() != 0 {
			t.Error("a call waits although none is under way")
		}
		all.Wait()
	})
}

// TestATripThatHangsKeepsNobody lets the first trips take for ever, as far as the others see.
func TestATripThatHangsKeepsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &road{took: time.Hour}
		l := lane.New(lane.Patience, r.carry)
		var all sync.WaitGroup
		want := [][]int{{0}, {10, 11}, {20, 21}}
		send(t, l, &all, 0, 1)
		for trip := 1; trip < lane.MaxFlights; trip++ {
			send(t, l, &all, 10*trip, 1)
			time.Sleep(lane.Patience)
			send(t, l, &all, 10*trip+1, 1)
		}
		time.Sleep(lane.Patience)
		send(t, l, &all, 100, 1)
		if !reflect.DeepEqual(r.trips, want) || l.Waiting() != 1 {
			t.Errorf("the trips are %v and %d calls wait, want %v and one", r.trips, l.Waiting(), want)
		}
		all.Wait()
		if r.most != lane.MaxFlights {
			t.Errorf("%d trips were under way at once, want %d", r.most, lane.MaxFlights)
		}
	})
}

func TestACallThatIsCancelledWhileItWaitsIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &road{took: time.Second}
		l := lane.New(time.Hour, r.carry)
		var all sync.WaitGroup
		send(t, l, &all, 0, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := l.Send(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		send(t, l, &all, 2, 1)
		all.Wait()
		if want := [][]int{{0}, {2}}; !reflect.DeepEqual(r.trips, want) {
			t.Errorf("the trips were %v, want %v", r.trips, want)
		}
	})
}

// TestACallThatTravelsWithOthersIsCancelled: its caller waits no longer, and the others
// get their answer.
func TestACallThatTravelsWithOthersIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &road{took: time.Second}
		l := lane.New(time.Hour, r.carry)
		var all sync.WaitGroup
		send(t, l, &all, 0, 2)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		start := time.Now()
		if err := l.Send(ctx, 2); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 1500*time.Millisecond {
			t.Errorf("after %v the error is %v", time.Since(start), err)
		}
		all.Wait()
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("the others were answered after %v", took)
		}
		l.Wait()
	})
}

func TestClosingFailsTheCallsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &road{took: time.Second}
		l := lane.New(time.Hour, r.carry)
		var all sync.WaitGroup
		send(t, l, &all, 0, 1)
		ended := make(chan error, 1)
		go func() { ended <- l.Send(t.Context(), 1) }()
		synctest.Wait()
		l.Close()
		if err := <-ended; !errors.Is(err, lane.ErrClosed) {
			t.Errorf("the error of a call that waited is %v", err)
		}
		if err := l.Send(t.Context(), 2); !errors.Is(err, lane.ErrClosed) {
			t.Errorf("the error of a call that came later is %v", err)
		}
		l.Beside(func() { t.Error("a lane that is closed begins something") })
		all.Wait()
		l.Wait()
		if want := [][]int{{0}}; !reflect.DeepEqual(r.trips, want) {
			t.Errorf("the trips were %v, want %v", r.trips, want)
		}
	})
}

func TestWaitIsForWhatRunsBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &road{took: time.Second}
		l := lane.New(time.Hour, r.carry)
		start := time.Now()
		l.Beside(func() { time.Sleep(time.Minute) })
		l.Close()
		l.Wait()
		if took := time.Since(start); took != time.Minute {
			t.Errorf("it waited for %v, want a minute", took)
		}
	})
}
