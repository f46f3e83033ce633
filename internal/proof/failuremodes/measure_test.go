package failuremodes_test

import (
	"time"
)

// all is every region.
const all = -1

// each calls f with what a region was asked for in [from, to).
func (w *world) each(region int, from, to time.Duration, f func(a ask)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.asks {
		if (region == all || a.region == region) && from <= a.at && a.at < to {
			f(a)
		}
	}
}

// served returns the part of the demand on a region that it admitted, in percent.
func (w *world) served(region int, from, to time.Duration) float64 {
	var wanted, gotten int64
	w.each(region, from, to, func(a ask) { wanted += a.wanted; gotten += a.gotten })
	if wanted == 0 {
		w.t.Errorf("region %d was asked for nothing between %v and %v", region, from, to)
	}
	return 100 * float64(gotten) / float64(wanted)
}

// others returns the least that a region but this one served.
func (w *world) others(region int, from, to time.Duration) float64 {
	least := 100.0
	for i := range w.regions {
		if i != region {
			least = min(least, w.served(i, from, to))
		}
	}
	return least
}

// whole is the least part of its demand that a recovered region serves, in percent, in
// every stretch of time that is as long as a window.
const whole = 90

// healed returns after how many seconds from an instant on a region serves the whole again
// until the end of the row, at least two windows long.
func (w *world) healed(region int, since time.Duration) float64 {
	const step = 100 * time.Millisecond
	healed := since
	last := w.at() - w.length()
	for at := since; at <= last; at += step {
		if w.served(region, at, at+w.length()) < whole {
			healed = at + step
		}
	}
	if healed > last-w.length() {
		w.t.Errorf("region %d does not recover until the end", region)
	}
	return (healed - since).Seconds()
}

// of returns what was admitted of the window of a number.
func (w *world) of(index int64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.named[index]
}

// forfeited returns the part of a window that no region could have, in percent of the
// limit, when all of it was wanted.
func (w *world) forfeited(index int64) float64 {
	return 100 * float64(w.params.Limit-w.of(index)) / float64(w.params.Limit)
}

// admitted returns what was admitted in all.
func (w *world) admitted() (units int64) {
	w.each(all, 0, w.at()+time.Hour, func(a ask) { units += a.gotten })
	return units
}

// excess returns by how much the worst window exceeded the limit.
func (w *world) excess() (over int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, windows := range []map[int64]int64{w.named, w.clocked} {
		for _, n := range windows {
			over = max(over, n-w.params.Limit)
		}
	}
	return over
}

// perWindow returns the least and the most that a region admitted of each window from
// first to last.
func (w *world) perWindow(region int, first, last int64) (least, most int64) {
	units := map[int64]int64{}
	w.each(region, 0, w.at(), func(a ask) { units[a.index] += a.gotten })
	least = w.params.Limit
	for index := first; index <= last; index++ {
		least, most = min(least, units[index]), max(most, units[index])
	}
	return least, most
}
