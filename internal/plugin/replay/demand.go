package replay

import (
	"maps"
	"slices"
	"time"
)

// A Demand measures how many requests come in a window, overall or of each value of a key.
type Demand struct {
	window time.Duration
	key    func(*Entry) string

	open    int64            // number of the open window
	counts  map[string]int64 // of it, by value
	windows map[int64]int64  // number of windows, by the number of requests that they had
	keyed   bool
	missing int64
}

// NewDemand measures windows of that length. A nil key measures all requests together; a request
// for which a key returns nothing is left out.
func NewDemand(window time.Duration, key func(*Entry) string) *Demand {
	d := &Demand{window: window, key: key, keyed: key != nil, counts: map[string]int64{}, windows: map[int64]int64{}}
	if key == nil {
		d.key = func(*Entry) string { return "all" }
	}
	return d
}

// Add notes a request. One that is older than the request before counts in the window of that.
func (d *Demand) Add(e *Entry) error {
	value := d.key(e)
	if value == "" {
		d.missing++
		return nil
	}
	switch at := e.Time.UnixMicro() / d.window.Microseconds(); {
	case len(d.windows) == 0 && len(d.counts) == 0:
		d.open = at
	case at > d.open:
		d.close()
		if !d.keyed {
			d.windows[0] += at - d.open - 1 // nobody came
		}
		d.open = at
	}
	d.counts[value]++
	return nil
}

// close notes the open window. Windows without a request of a key do not count for it.
func (d *Demand) close() {
	for _, n := range d.counts {
		d.windows[n]++
	}
	clear(d.counts)
}

// A Measure is what a Demand found.
type Measure struct {
	Windows       int64 // measured; of a key those in which it had requests, for all keys together
	P50, P99, Max int64 // requests in a window
	Missing       int64 // requests that were left out

	counts []int64 // the numbers of requests that windows had, ascending
	of     map[int64]int64
}

// Measure returns what was measured. No request is added after it.
func (d *Demand) Measure() Measure {
	d.close()
	m := Measure{Missing: d.missing, of: d.windows}
	m.counts = slices.DeleteFunc(slices.Sorted(maps.Keys(d.windows)), func(n int64) bool { return d.windows[n] == 0 })
	for _, n := range m.counts {
		m.Windows += d.windows[n]
		m.Max = n
	}
	m.P50, m.P99 = m.Percentile(50), m.Percentile(99)
	return m
}

// Percentile returns the smallest number that this percentage of the windows does not exceed.
func (m *Measure) Percentile(percent int64) int64 {
	var sum int64
	for _, n := range m.counts {
		if sum += m.of[n]; sum*100 >= m.Windows*percent {
			return n
		}
	}
	return m.Max
}

// Beyond returns how many requests windows of that limit would have refused.
func (m *Measure) Beyond(limit int64) int64 {
	var sum int64
	for _, n := range m.counts {
		sum += max(0, n-limit) * m.of[n]
	}
	return sum
}
