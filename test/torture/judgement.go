package main

import (
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
	limit func(index int64) int64
}

// verdict is what a judgement comes to.
type verdict struct {
	arrivals int
	windows  int             // that something was charged to
	over     int64           // arrivals that fit into no window
	full     []int64         // the windows that they may belong to
	least    map[int64]int64 // what is surely of a window
	most     map[int64]int64 // what may be
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
func (j judgement) candidates(a arrival) []int64 {
	found := map[int64]bool{}
	for _, e := range j.eras {
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
			for i := max(first, j.index(e.shows(a.sent))); i <= last; i++ {
				found[i] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// add adds the windows that the era's clock shows in a span of time.
func (j judgement) add(found map[int64]bool, e era, from, until time.Time) {
	for i := j.index(e.shows(from)); i <= j.index(e.shows(until)); i++ {
		found[i] = true
	}
}

// of judges arrivals.
func (j judgement) of(arrivals []arrival) verdict {
	v := verdict{arrivals: len(arrivals), least: map[int64]int64{}, most: map[int64]int64{}}
	groups := map[string]*group{}
	for _, a := range arrivals {
		windows := j.candidates(a)
		if len(windows) == 1 {
			v.least[windows[0]]++
		}
		for _, w := range windows {
			v.most[w]++
		}
		key := fmt.Sprint(windows)
		g := groups[key]
		if g == nil {
			g = &group{windows: windows}
			groups[key] = g
		}
		g.left++
	}
	v.windows = len(v.most)
	f := flow{room: map[int64]int64{}, in: map[int64]map[*group]int64{}}
	for w := range v.most {
		f.room[w] = j.limit(w)
		f.in[w] = map[*group]int64{}
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		v.over += f.place(groups[key], &v.full)
	}
	slices.Sort(v.full)
	v.full = slices.Compact(v.full)
	return v
}

// A group is arrivals that may be charged to the same windows.
type group struct {
	windows []int64
	left    int64 // not placed yet
}

// flow divides groups among windows.
type flow struct {
	room map[int64]int64            // left in each window
	in   map[int64]map[*group]int64 // what each window holds
}

// place puts a group into windows, moving others to make room, and returns what found
// none, with the windows that were tried for it.
func (f *flow) place(g *group, full *[]int64) int64 {
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

// A step of a path puts some of a group into a window.
type step struct {
	g      *group
	window int64
}

// path finds how room can be made for some of a group: each step's group leaves the
// window of the step before. It also returns the windows it came to.
func (f *flow) path(g *group) ([]step, map[int64]bool) {
	seen := map[int64]bool{}
	before := map[int64][]step{}
	var queue []int64
	visit := func(by []step, g *group) {
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
func (f *flow) push(g *group, path []step) {
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
