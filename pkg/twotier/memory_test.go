package twotier

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/store"
)

// few is a Memory of few bytes, and as many more for keys that are shared.
type few struct {
	mu           sync.Mutex
	bytes, taken int64
}

func (f *few) Take(n int64, shared bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	bound := f.bytes
	if shared {
		bound *= 2
	}
	if f.taken+n > bound {
		return false
	}
	f.taken += n
	return true
}

func (f *few) Give(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken -= n
}

func (f *few) used() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.taken
}

// TestValuesBeyondTheMemoryShareCounters, as those beyond MaxKeys do, until keys that are idle
// give theirs back.
func TestValuesBeyondTheMemoryShareCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := newFakeStore(), &few{bytes: 10 * bytesOf("0")}
		cfg := perSecond(10, 5)
		cfg.MaxKeys, cfg.SharedKeys, cfg.Memory = 100, 3, m
		l := openWith(t, cfg, s, newClock())
		for i := range 500 {
			acquire(t, l, fmt.Sprint(i%50), 1)
		}
		if got := l.Stats(); got.ActiveKeys < 5 || got.ActiveKeys > 10 || got.Full != MemoryBound {
			t.Errorf("%d keys, bound %d; want 10 at most, and the memory", got.ActiveKeys, got.Full)
		}
		for i := range 50 {
			if k := l.Key(fmt.Sprint(i), ""); k.isShared() && k.value() != store.Shared(store.Share(fmt.Sprint(i), 3)) {
				t.Errorf("value %d is counted on %q", i, k.value())
			}
		}
		nextWindow()
		nextWindow()
		for i := range 6 {
			acquire(t, l, fmt.Sprint("x", i), 1)
		}
		if k := l.Key("x5", ""); k.isShared() {
			t.Error("a value shares a counter although idle keys could go")
		}
		l.Close(t.Context())
		if got := m.used(); got != 0 {
			t.Errorf("%d bytes are kept", got)
		}
		if k := l.Key("late", ""); !k.isShared() || m.used() != 0 {
			t.Errorf("a limiter that is closed takes %d bytes", m.used())
		}
	})
}

// TestOneSharedCounterNeedsNoMemory: it stands in for the others.
func TestOneSharedCounterNeedsNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := hourly(10, 5)
		cfg.SharedKeys, cfg.Memory = 7, &few{}
		l := open(t, cfg, s)
		admitted := 0
		for i := range 100 {
			if acquire(t, l, fmt.Sprint(i), 1).Allowed {
				admitted++
			}
		}
		if len(s.keys) != 1 || admitted != 10 {
			t.Errorf("%d admitted on %d counters, want 10 on one", admitted, len(s.keys))
		}
	})
}

// TestAShareWithoutMemoryIsThatOfASharedCounter: nothing is admitted that is not remembered.
func TestAShareWithoutMemoryIsThatOfASharedCounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := newFakeStore(), &few{bytes: 20*bytesOf("00") + 5*extraBytes}
		cfg := perSecond(10, 5)
		cfg.OnUnavailable, cfg.SharedKeys, cfg.Memory = LocalShare, 1, m
		l := openWith(t, cfg, s, newClock())
		for i := range 20 {
			acquire(t, l, fmt.Sprintf("%02d", i), 1)
		}
		s.set(func() { s.down = errDown })
		nextWindow()
		admitted := map[string]int{}
		for i := range 20 * 30 {
			if value := fmt.Sprintf("%02d", i%20); acquire(t, l, value, 1).Allowed {
				admitted[value]++
			}
		}
		total, own := 0, 0
		for value, n := range admitted {
			if total += n; n == 10 {
				own++
			} else if n > 10 {
				t.Errorf("%s is admitted %d on a share of 10", value, n)
			}
		}
		if own < 3 || total > 10*(5+1) {
			t.Errorf("%d admitted, %d values their whole share; there is memory for 5, and the others have one share together", total, own)
		}
		if got := l.Stats().Full; got != MemoryBound {
			t.Errorf("bound %d, want the memory", got)
		}
		time.Sleep(2 * time.Second)
		s.set(func() { s.down = nil })
		for i := range 20 {
			acquire(t, l, fmt.Sprintf("%02d", i), 1)
			time.Sleep(time.Second)
		}
		if got, want := m.used(), int64(l.Stats().ActiveKeys)*bytesOf("00"); got != want {
			t.Errorf("%d bytes are taken when the store is back, want %d for the keys", got, want)
		}
		l.Close(t.Context())
		if got := m.used(); got != 0 {
			t.Errorf("%d bytes are kept", got)
		}
	})
}
