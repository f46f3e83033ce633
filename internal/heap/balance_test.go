package heap

import (
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

const mb = 1e6

// process is one that keeps 200 MB, which takes a quarter of a second to collect.
type process struct {
	usage
}

// pass lets time pass in which the process allocates so much in a second.
func (p *process) pass(seconds, rate float64) {
	p.at = p.at.Add(time.Duration(seconds * float64(time.Second)))
	p.live = 200 * mb
	p.allocated += rate * seconds
	if rate > 0 {
		p.cycles++
		p.collecting += 0.25
	}
}

// TestTheHeapGrowsByWhatCostsLeast: by sqrt(0.25 s × rate / 1.5e-9), of 200 MB.
func TestTheHeapGrowsByWhatCostsLeast(t *testing.T) {
	for _, tc := range []struct {
		rate float64
		want int
	}{
		{0.1 * mb, 10}, {10 * mb, 20}, {24 * mb, 31}, {96 * mb, 63}, {180 * mb, 86}, {1000 * mb, 100},
	} {
		var p process
		g := newGrowth(100, p.usage)
		p.pass(1, tc.rate)
		if got, changed := g.next(p.usage); got != tc.want || changed != (tc.want < 91) {
			t.Errorf("%.1f MB a second: grows by %d %%, changed: %t, want %d", tc.rate/mb, got, changed, tc.want)
		}
	}
}

// TestStacksAndGlobalsCount: the runtime has the heap grow by a percentage of them, too.
func TestStacksAndGlobalsCount(t *testing.T) {
	var p process
	g := newGrowth(100, p.usage)
	p.pass(1, 96*mb)
	p.roots = 40 * mb
	if got, _ := g.next(p.usage); got != 52 {
		t.Errorf("the heap grows by %d %%, want 52: 63 %% of live objects", got)
	}
}

// TestMoreCountsAtOnceAndLessLater: a burst has its room in the next interval, and keeps it for some.
func TestMoreCountsAtOnceAndLessLater(t *testing.T) {
	var p process
	g := newGrowth(100, p.usage)
	step := func(rate float64) int {
		p.pass(1, rate)
		got, _ := g.next(p.usage)
		return got
	}
	if got := step(mb); got != 10 {
		t.Fatalf("at rest it grows by %d %%, want 10", got)
	}
	if got := step(216 * mb); got != 94 {
		t.Errorf("in a burst it grows by %d %%, want 94", got)
	}
	if got := step(mb); got < 85 || got > 94 {
		t.Errorf("right after a burst it grows by %d %%, want about 94", got)
	}
	for range 60 {
		step(mb)
	}
	if got := step(mb); got != 10 {
		t.Errorf("a minute after a burst it grows by %d %%, want 10", got)
	}
}

// TestAGrowthStays before the first collection, at a reading of the same instant, and within a tenth.
func TestAGrowthStays(t *testing.T) {
	var p process
	g := newGrowth(100, p.usage)
	p.at, p.allocated = p.at.Add(time.Second), mb
	if got, changed := g.next(p.usage); got != 100 || changed {
		t.Errorf("before the first collection: %d %%, %t, want 100, unchanged", got, changed)
	}
	p.pass(1, 96*mb)
	if got, changed := g.next(p.usage); got != 63 || !changed {
		t.Fatalf("got %d %%, %t, want 63, changed", got, changed)
	}
	if got, changed := g.next(p.usage); got != 63 || changed {
		t.Errorf("at the same instant: %d %%, %t, want 63, unchanged", got, changed)
	}
	p.pass(1, 110*mb)
	if got, changed := g.next(p.usage); got != 63 || changed {
		t.Errorf("a little more: %d %%, %t, want 63, unchanged", got, changed)
	}
}

// TestBalanceSetsEachChange until its context is done.
func TestBalanceSetsEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p process
		rates := []float64{mb, mb, 1000 * mb, 1000 * mb}
		var got []int
		ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
		defer cancel()
		first := true
		balance(ctx, 100, func() usage {
			if !first {
				p.pass(1, rates[0])
				rates = rates[1:]
			}
			first = false
			return p.usage
		}, func(percent int) int {
			got = append(got, percent)
			return 0
		})
		if want := []int{10, 100}; !slices.Equal(got, want) || len(rates) != 0 {
			t.Errorf("set %v, want %v; %d readings are left", got, want, len(rates))
		}
	})
}

var kept []byte

// TestAProcessIsRead as the runtime counts it.
func TestAProcessIsRead(t *testing.T) {
	kept = make([]byte, 4<<20)
	runtime.GC()
	before := read()
	kept = make([]byte, 8<<20)
	runtime.GC()
	after := read()
	if n := after.allocated - before.allocated; n < 8<<20 || n > 16<<20 {
		t.Errorf("%v bytes were allocated, want 8 MiB and a little", n)
	}
	if after.roots < 1<<10 {
		t.Errorf("stacks and global variables have %v bytes", after.roots)
	}
	if after.live < 8<<20 || after.cycles <= before.cycles || after.collecting <= before.collecting || !after.at.After(before.at) {
		t.Errorf("got %+v after %+v, want 8 MiB live, and one collection more", after, before)
	}
	kept = nil
}

// TestTheEnvironmentForbidsABalance: GOGC is what the operator of the process wants.
func TestTheEnvironmentForbidsABalance(t *testing.T) {
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	t.Setenv("GOGC", "77")
	Balance(t.Context(), 300) // returns
	if got := debug.SetGCPercent(77); got != 77 {
		t.Errorf("the heap grows by %d %%, want what the environment says", got)
	}
}
