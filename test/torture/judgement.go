package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// An arrival is one request that reached the application. It was let through at some
// instant between both.
type arrival struct{ sent, reached time.Time }

// An era is a time in which a store's clock ran evenly. Eras may overlap where it is
// not known when one ended.
type era struct {
	from, until time.Time
	shows       func(time.Time) time.Time // what the clock shows at an instant
	store       int                       // of a policy that is moved
	first       int64                     // no window before it is served; 0 when all are
	drained     time.Time                 // from then on no pod spends its grants; zero when they may
}

// A windowID names a window of one store's clock.
type windowID struct {
	store int
	index int64
}

func compareWindows(a, b windowID) int {
	return cmp.Or(cmp.Compare(a.store, b.store), cmp.Compare(a.index, b.index))
}

// slack is how exactly the instants are known at which clocks were set.
const slack = 5 * time.Millisecond

// A judgement holds arrivals of one counter against what its windows may admit.
//
// Within an era a request is charged to the window that the store's clock shows while the
// request is on its way, which are two for one that arrives just after a window's end.
// After a clock was set, credits of the window that was open then may be spent until its
// end by the clock as it was. So each arrival has a few windows that it may have been
// charged to. The promise is broken exactly when the arrivals cannot be divided among
// these windows without one exceeding its limit: a maximum flow decides it. No honest run
// fails, and one request too many in a window that no clock was set in does.
type judgement struct {
	window time.Duration
	eras   []era
	// stale is for how long after a clock was set a sidecar may go by what it showed
	// before: one that is cut off, and admits its local share.
	stale time.Duration
	// guessed is by how much a sidecar may be wrong about the store's clock that admits
	// requests without the store, and charges them to the window that it takes for open.
	guessed time.Duration
	limit   func(windowID) int64
}

// verdict is what a judgement comes to.
type verdict struct {
	arrivals int
	windows  int                // that something was charged to
	over     int64              // arrivals that fit into no window
	full     []windowID         // the windows that they may belong to
	least    map[windowID]int64 // what is surely of a window
	most     map[windowID]int64 // what may be
}

func (v verdict) String() string {
	return fmt.Sprintf("%d arrivals in %d windows, %d over", v.arrivals, v.windows, v.over)
}

func (j judgement) index(t time.Time) int64 {
	n, length := t.UnixMicro(), j.window.Microseconds()
	if n < 0 {
		return (n+1)/length - 1
	}
	return n / length
}

// candidates returns the windows that an arrival may have been charged to, in order.
func (j judgement) candidates(a arrival) []windowID {
	found := map[windowID]bool{}
	a.sent, a.reached = a.sent.Add(-j.guessed), a.reached.Add(j.guessed)
	for _, e := range j.eras {
		if !e.drained.IsZero() && a.sent.After(e.drained.Add(slack)) {
			continue
		}
		from, until := a.sent, a.reached
		if e.from.After(from) {
			from = e.from.Add(-slack)
		}
		if e.until.Before(until) {
			until = e.until.Add(slack)
		}
		if !from.After(until) {
			j.add(found, e, from, until)
		}
		if a.reached.After(e.until) && a.sent.Before(e.until.Add(j.stale)) {
			j.add(found, e, later(a.sent, e.until), a.reached)
		}
		// Credits of the window that was open when the era ended live as long as it would
		// have.
		if a.reached.After(e.until) {
			first, last := j.index(e.shows(e.until.Add(-slack))), j.index(e.shows(e.until.Add(slack)))
			for i := max(first, j.index(e.shows(a.sent)), e.first); i <= last; i++ {
				found[windowID{e.store, i}] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), compareWindows)
}

// add adds the windows that the era's clock shows in a span of time.
func (j judgement) add(found map[windowID]bool, e era, from, until time.Time) {
	for i := max(j.index(e.shows(from)), e.first); i <= j.index(e.shows(until)); i++ {
		found[windowID{e.store, i}] = true
	}
}

// of judges arrivals.
func (j judgement) of(arrivals []arrival) verdict {
	v := verdict{arrivals: len(arrivals), least: map[windowID]int64{}, most: map[windowID]int64{}}
	batches := map[string]*batch{}
	for _, a := range arrivals {
		windows := j.candidates(a)
		if len(windows) == 1 {
			v.least[windows[0]]++
		}
		for _, w := range windows {
			v.most[w]++
		}
		key := fmt.Sprint(windows)
		g := batches[key]
		if g == nil {
			g = &batch{windows: windows}
			batches[key] = g
		}
		g.left++
	}
	v.windows = len(v.most)
	f := flow{room: map[windowID]int64{}, in: map[windowID]map[*batch]int64{}}
	for w := range v.most {
		f.room[w] = j.limit(w)
		f.in[w] = map[*batch]int64{}
	}
	for _, key := range slices.Sorted(maps.Keys(batches)) {
		v.over += f.place(batches[key], &v.full)
	}
	slices.SortFunc(v.full, compareWindows)
	v.full = slices.Compact(v.full)
	return v
}

// A batch is arrivals that may be charged to the same windows.
type batch struct {
	windows []windowID
	left    int64 // not placed yet
}

// flow divides batches among windows.
type flow struct {
	room map[windowID]int64            // left in each window
	in   map[windowID]map[*batch]int64 // what each window holds
}

// place puts a batch into windows, moving others to make room, and returns what found
// none, with the windows that were tried for it.
func (f *flow) place(g *batch, full *[]windowID) int64 {
	for g.left > 0 {
		path, seen := f.path(g)
		if path == nil {
			*full = append(*full, slices.Collect(maps.Keys(seen))...)
			return g.left
		}
		f.push(g, path)
	}
	return 0
}

// A step of a path puts some of a batch into a window.
type step struct {
	g      *batch
	window windowID
}

// path finds how room can be made for some of a batch: each step's batch leaves the
// window of the step before. It also returns the windows it came to.
func (f *flow) path(g *batch) ([]step, map[windowID]bool) {
	seen := map[windowID]bool{}
	before := map[windowID][]step{}
	var queue []windowID
	visit := func(by []step, g *batch) {
		for _, w := range g.windows {
			if !seen[w] {
				seen[w] = true
				before[w] = append(slices.Clone(by), step{g, w})
				queue = append(queue, w)
			}
		}
	}
	visit(nil, g)
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		if f.room[w] > 0 {
			return before[w], seen
		}
		for other, n := range f.in[w] {
			if n > 0 {
				visit(before[w], other)
			}
		}
	}
	return nil, seen
}

// push moves as much along a path as it takes.
func (f *flow) push(g *batch, path []step) {
	n := min(g.left, f.room[path[len(path)-1].window])
	for i := 1; i < len(path); i++ {
		n = min(n, f.in[path[i-1].window][path[i].g])
	}
	for i, s := range path {
		f.in[s.window][s.g] += n
		if i > 0 {
			f.in[path[i-1].window][s.g] -= n
		}
	}
	f.room[path[len(path)-1].window] -= n
	g.left -= n
}
