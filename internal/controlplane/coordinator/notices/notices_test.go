package notices

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A reader notes when it is passed a name.
type reader struct {
	mu  sync.Mutex
	got []time.Duration
}

// read reads until ctx is done.
func (r *reader) read(ctx context.Context, of *Notices, began time.Time) {
	for {
		select {
		case <-of.Out():
			r.mu.Lock()
			r.got = append(r.got, time.Since(began))
			r.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

func (r *reader) has(t *testing.T, want ...time.Duration) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.got, want) {
		t.Errorf("passed on after %v, want %v", r.got, want)
	}
}

// TestABurstIsPassedOnTwice: at once, and when it is over.
func TestABurstIsPassedOnTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, r, began := New(), &reader{}, time.Now()
		go n.Run(t.Context())
		go r.read(t.Context(), n, began)
		synctest.Wait()
		n.Add()
		r.has(t)
		for range 100 {
			n.Add(checkout)
			time.Sleep(time.Millisecond)
		}
		r.has(t, 0)
		time.Sleep(time.Minute)
		r.has(t, 0, 150*time.Millisecond)
		if len(n.recent) > 0 || len(n.ready) > 0 {
			t.Errorf("it remembers %v and %v", n.recent, n.ready)
		}
		n.Add(checkout)
		r.has(t, 0, 150*time.Millisecond, time.Minute+100*time.Millisecond)
	})
}

// TestNothingIsLostBetweenTwoTerms: what was named before, between and while the reader did not read.
func TestNothingIsLostBetweenTwoTerms(t *testing.T) {
	names := []types.NamespacedName{checkout, {Namespace: "shop", Name: "search"}, {Namespace: "shop", Name: "cart"}}
	synctest.Test(t, func(t *testing.T) {
		n := New()
		n.Add(names[0])
		ctx, stop := context.WithCancel(t.Context())
		go n.Run(ctx)
		synctest.Wait()
		n.Add(names[1])
		stop()
		synctest.Wait()
		n.Add(names[2], names[1])
		go n.Run(t.Context())
		got := map[types.NamespacedName]int{}
		for range 5 {
			select {
			case name := <-n.Out():
				got[name]++
			case <-time.After(time.Minute):
			}
		}
		for _, name := range names {
			if got[name] == 0 {
				t.Errorf("%s is lost", name)
			}
		}
	})
}
