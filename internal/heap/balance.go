package heap

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// balanceInterval is how often the growth of the heap is looked at.
	balanceInterval = time.Second
	// leastGrowth is what the heap grows by at least, in percent of the bytes that a collection scans.
	leastGrowth = 10
	// bytePrice is the part of a processor that a byte of memory is worth: 1.5 % for 10 MB.
	bytePrice = 1.5e-9
	// forget is the part of a rate of allocation that is forgotten in each interval once less is
	// allocated. More counts at once.
	forget = 0.1
)

// Balance lets the heap grow by less than percent, at least by 10 %, while little is allocated, and
// returns when ctx is done. A process that keeps much and allocates little needs memory for its
// live objects alone; it is collected a little more often. The growth is the one at which the
// memory for garbage and the processor time of collections cost the least together, which is the
// square root of the work of a collection times the rate of allocation (Kirisame, Shenoy,
// Panchekha: Optimal Heap Limits for Reducing Browser Memory Use, OOPSLA 2022). GOGC takes
// precedence.
func Balance(ctx context.Context, percent int) {
	if os.Getenv("GOGC") == "" {
		balance(ctx, percent, read, debug.SetGCPercent)
	}
}

func balance(ctx context.Context, percent int, read func() usage, set func(int) int) {
	g := newGrowth(percent, read())
	ticks := time.NewTicker(balanceInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			if next, changed := g.next(read()); changed {
				set(next)
			}
		case <-ctx.Done():
			return
		}
	}
}

// usage is what a process has used at an instant, since it began.
type usage struct {
	at         time.Time
	allocated  float64 // bytes
	collecting float64 // seconds of a processor that could have done something else
	cycles     float64
	live       float64 // bytes that the last collection found
	roots      float64 // bytes of stacks and of global variables, which count for the percentage as well
}

func read() usage {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/idle:cpu-seconds"},
		{Name: "/gc/scan/stack:bytes"},
		{Name: "/gc/scan/globals:bytes"},
	}
	metrics.Read(samples)
	return usage{
		at:         time.Now(),
		allocated:  float64(samples[0].Value.Uint64()),
		live:       float64(samples[1].Value.Uint64()),
		cycles:     float64(samples[2].Value.Uint64()),
		collecting: samples[3].Value.Float64() - samples[4].Value.Float64(),
		roots:      float64(samples[5].Value.Uint64() + samples[6].Value.Uint64()),
	}
}

// A growth follows what a process uses.
type growth struct {
	most, now int // percent
	last      usage
	rate      float64 // bytes allocated in a second
	cycle     float64 // seconds of a processor for a collection; 0 before the first
}

func newGrowth(percent int, u usage) *growth {
	return &growth{most: percent, now: percent, last: u}
}

// next returns the growth by what was used meanwhile, and whether that is worth a change, which
// stops the process for a moment.
func (g *growth) next(u usage) (percent int, changed bool) {
	seconds := u.at.Sub(g.last.at).Seconds()
	if seconds <= 0 {
		return g.now, false
	}
	rate := (u.allocated - g.last.allocated) / seconds
	g.rate = max(rate, g.rate+(rate-g.rate)*forget)
	if cycles := u.cycles - g.last.cycles; cycles > 0 {
		g.cycle = (u.collecting - g.last.collecting) / cycles
	}
	g.last = u
	if g.cycle <= 0 || u.live <= 0 {
		return g.now, false
	}
	best := 100 * math.Sqrt(g.cycle*g.rate/bytePrice) / (u.live + u.roots)
	percent = int(min(max(best, leastGrowth), float64(g.most)))
	if step := max(g.now/10, 1); percent > g.now-step && percent < g.now+step {
		return g.now, false
	}
	g.now = percent
	return percent, true
}
