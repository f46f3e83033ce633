package pages

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// A burst notes when memory was given back, of a process that allocates for ten seconds.
type burst struct {
	*Surplus
	start time.Time
	takes time.Duration // to give memory back
	given []time.Duration
}

// newBurst returns one that allocates that many bytes in a second.
func newBurst(rate float64) *burst {
	b := &burst{start: time.Now()}
	b.Surplus = newSurplus(
		func() {
			b.given = append(b.given, time.Since(b.start))
			<-time.After(b.takes)
		},
		func() uint64 { return uint64(min(10, time.Since(b.start).Seconds()) * rate) })
	return b
}

// pass lets the time pass up to an instant since the start.
func (b *burst) pass(until time.Duration) {
	<-time.After(time.Until(b.start.Add(until)))
	synctest.Wait()
}

func (b *burst) want(t *testing.T, want ...time.Duration) {
	t.Helper()
	if len(b.given) != len(want) {
		t.Fatalf("memory was given back at %v, want %v", b.given, want)
	}
	for i, at := range want {
		if b.given[i] != at {
			t.Errorf("memory was given back at %v, want %v", b.given, want)
		}
	}
}

func TestMemoryIsGivenBackOnceTheProcessIsCalm(t *testing.T) {
	for name, tc := range map[string]struct {
		freed int64
		rate  float64
		want  []time.Duration
	}{
		"calm from the beginning": {surplusBytes, 0, []time.Duration{2 * calmTime}},
		"about calm":              {surplusBytes, 4 * calmBytes, []time.Duration{2 * calmTime}},
		"busy for ten seconds":    {surplusBytes, 4*calmBytes + 100, []time.Duration{10*time.Second + calmTime}},
		"too little":              {surplusBytes - 1, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBurst(tc.rate)
				for left := tc.freed; left > 0; left -= 1 << 10 {
					b.Freed(min(left, 1<<10))
				}
				b.pass(time.Hour)
				b.want(t, tc.want...)
			})
		})
	}
}

// TestGarbageIsGivenBack once there is enough of it, with the next connection that ends.
func TestGarbageIsGivenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		rate float64
		want []time.Duration
	}{
		"much":   {surplusBytes / 8, []time.Duration{8*time.Second + calmTime}},
		"little": {surplusBytes/10 - 10, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBurst(tc.rate)
				for i := range 60 {
					b.pass(time.Duration(i) * time.Second)
					b.Freed(1)
				}
				b.pass(time.Hour)
				b.want(t, tc.want...)
			})
		})
	}
}

// TestMemoryIsGivenBackAsOftenAsThatCosts little: each burst after the other, unless that would take more
// than a thousandth of the time. A minute later it is given back in any case.
func TestMemoryIsGivenBackAsOftenAsThatCosts(t *testing.T) {
	for name, tc := range map[string]struct{ takes, pause time.Duration }{
		"nothing":  {0, leastPause},
		"little":   {5 * time.Millisecond, 5 * time.Second},
		"somewhat": {20 * time.Millisecond, 20 * time.Second},
		"much":     {time.Second, mostPause},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBurst(0)
				b.takes = tc.takes
				for i := range 300 {
					b.Freed(surplusBytes)
					b.pass(time.Duration(i) * time.Second)
				}
				b.pass(time.Hour)
				if len(b.given) < 2 {
					t.Fatalf("memory was given back at %v", b.given)
				}
				for i, at := range b.given[1:] {
					after := at - b.given[i] - tc.takes
					if after < tc.pause || after > tc.pause+time.Second+2*calmTime {
						t.Errorf("it was given back %v after the time before, want %v", after, tc.pause)
					}
				}
			})
		})
	}
}

// TestMemoryIsGivenBackOnceABurstIsOver, though the process allocates nothing: what is freed later would
// be kept for a minute. A few connections that end again and again are not a burst.
func TestMemoryIsGivenBackOnceABurstIsOver(t *testing.T) {
	for name, tc := range map[string]struct {
		each int64 // freed ten times a second, for five seconds
		want time.Duration
	}{
		"a burst":         {calmBytes/2 + 1, 5100 * time.Millisecond},
		"not much at all": {calmBytes / 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBurst(0)
				if tc.want == 0 {
					b.Freed(surplusBytes)
					tc.want = calmTime
					b.takes = time.Second // so it is not given back again
				}
				for i := range 50 {
					b.Freed(tc.each)
					b.pass(time.Duration(i+1) * 100 * time.Millisecond)
				}
				b.pass(time.Minute / 2)
				if len(b.given) != 1 || b.given[0] < tc.want-calmTime || b.given[0] > tc.want+calmTime {
					t.Errorf("memory was given back at %v, want once about %v", b.given, tc.want)
				}
			})
		})
	}
}

// TestWhatSeveralFreeIsGivenBack from goroutines of their own, by the process itself.
func TestWhatSeveralFreeIsGivenBack(t *testing.T) {
	done := make(chan struct{})
	s := newSurplus(func() {
		collect()
		close(done)
	}, allocated)
	for range 8 {
		go s.Freed(surplusBytes / 4)
	}
	<-done
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if kept := m.HeapIdle - m.HeapReleased; kept > 4*surplusBytes {
		t.Errorf("%d bytes are in use no more and kept", kept)
	}
}
