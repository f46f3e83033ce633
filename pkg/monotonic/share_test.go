package monotonic

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestCallsThatBeginTogetherShareAContext, those of another time or a later one have another, and
// each has fifteen sixteenths of its time at least.
func TestCallsThatBeginTogetherShareAContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d = 16 * time.Millisecond
		s := Share(t.Context())
		first, leaveFirst := Within(s, d)
		time.Sleep(time.Millisecond - 1)
		again, leaveAgain := Within(s, d)
		other, leaveOther := Within(s, 2*d)
		if again != first || other == first {
			t.Errorf("the same context: %v for a call that begins with another, %v for one of another time", again == first, other == first)
		}
		back, leaveBack := Within(s, d)
		if back == first {
			t.Error("a context is joined that is not the latest")
		}
		time.Sleep(time.Millisecond)
		later, leaveLater := Within(s, d)
		if later == back {
			t.Error("a call shares a context that began too long before")
		}
		leaveFirst()
		if first.Err() != nil {
			t.Error("a call that ends ends others")
		}
		began := time.Now()
		<-again.Done()
		if took := time.Since(began); !errors.Is(again.Err(), context.DeadlineExceeded) || took < d-2*time.Millisecond || took > d {
			t.Errorf("%v after %v", again.Err(), took)
		}
		leaveAgain()
		leaveOther()
		leaveBack()
		leaveLater()
		for name, ctx := range map[string]context.Context{"of another time": other, "of those before": back} {
			if !errors.Is(ctx.Err(), context.Canceled) {
				t.Errorf("the context %s, whose calls have all ended, ended by %v", name, ctx.Err())
			}
		}
		if later.Err() != nil {
			t.Errorf("the latest context ended by %v", later.Err())
		}
	})
}

func TestSharedContextsEndWithTheirParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, end := context.WithCancel(t.Context())
		ctx, leave := Within(Share(parent), time.Minute)
		defer leave()
		end()
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("ended by %v", ctx.Err())
		}
	})
}

func TestASharedCallTakesNoMemory(t *testing.T) {
	s := Share(t.Context())
	_, leave := Within(s, time.Hour)
	defer leave()
	if n := testing.AllocsPerRun(100, func() {
		_, leave := Within(s, time.Hour)
		leave()
	}); n > 0 {
		t.Errorf("%v allocations a call", n)
	}
}
