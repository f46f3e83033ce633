package budgetaudit

import (
	"maps"
	"slices"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A version is what the overrides of a budget were for a time.
type version struct {
	overrides   []ledger.Override
	from, until limiter.Instant // within which they may have held
	seen        limiter.Instant // when they were last found to hold
	// ofAll are those of the values that had the limit of all for a part of the time.
	ofAll map[string]bool
}

// late is for how long after an edit units may still be granted by the overrides before: a
// request that was under way asks by them.
const late = 5 * limiter.Second

// maxOverridden bounds the values of one version. Windows in which more had limits of their own are
// not measured.
const maxOverridden = 4 * ledger.MaxOverrides

// Override notes which values have limits of their own at the instant now. Of a window in which
// that was edited, the largest limit counts that a value had.
func (v *Values) Override(overrides []ledger.Override, now limiter.Instant) {
	var from limiter.Instant // nobody looked before, and windows before are not measured
	if n := len(v.held); n > 0 {
		last := &v.held[n-1]
		if slices.Equal(last.overrides, overrides) {
			last.seen = max(last.seen, now)
			return
		}
		from, last.until = last.seen, now.Add(late)
		v.join()
	}
	v.held = append(v.held, version{overrides: overrides, from: from, until: limiter.MaxInstant, seen: now})
	oldest := limiter.Instant(int64(now) - maxValueRows*int64(v.window))
	v.held = slices.DeleteFunc(v.held, func(o version) bool { return o.until < oldest && !v.counts(&o) })
	for _, w := range v.windows {
		w.fresh = w.fresh && end(v.window, w.index) <= from
	}
}

// counts reports whether the version may have held in a window that is remembered.
func (v *Values) counts(o *version) bool {
	for index := range v.windows {
		if o.in(v.window, index) {
			return true
		}
	}
	return false
}

// in reports whether the version may have held in the window.
func (o *version) in(window limiter.Micros, index int64) bool {
	return o.until >= limiter.Instant(index*int64(window)) && o.from < end(window, index)
}

// join makes the last two versions one if they held in the same windows, where both count alike:
// so their number does not grow with that of the edits.
func (v *Values) join() {
	n := len(v.held)
	if n < 2 || !v.held[n-2].alongside(&v.held[n-1], v.window) {
		return
	}
	joined := v.held[n-2].with(&v.held[n-1])
	v.held = v.held[:n-1]
	v.held[n-2] = joined
	if len(joined.overrides) <= maxOverridden {
		return
	}
	v.held = v.held[:n-2]
	v.since = max(v.since, joined.until+1)
	maps.DeleteFunc(v.windows, func(index int64, _ *valueWindow) bool { return limiter.Instant(index*int64(v.window)) < v.since })
}

// alongside reports whether two versions may have held in the same windows.
func (o *version) alongside(other *version, window limiter.Micros) bool {
	of := func(at limiter.Instant) int64 { return int64(at) / int64(window) }
	return of(o.from) == of(other.from) && of(o.until) == of(other.until)
}

// with returns two versions as one, of the time of both.
func (o *version) with(later *version) version {
	limits, times := map[string]int64{}, map[string]int{}
	for _, value := range slices.Concat(o.overrides, later.overrides) {
		limits[value.Hash] = max(limits[value.Hash], value.Limit)
		times[value.Hash]++
	}
	joined := version{from: o.from, until: later.until, seen: later.seen, ofAll: map[string]bool{}}
	for hash, limit := range limits {
		joined.overrides = append(joined.overrides, ledger.Override{Hash: hash, Limit: limit})
		if times[hash] < 2 || o.ofAll[hash] || later.ofAll[hash] {
			joined.ofAll[hash] = true
		}
	}
	return joined
}

// own returns the limits of values that had their own in a window.
func (v *Values) own(w *valueWindow) map[string]int64 {
	own, times, versions := map[string]int64{}, map[string]int{}, 0
	for i := range v.held {
		o := &v.held[i]
		if !o.in(v.window, w.index) {
			continue
		}
		versions++
		for _, value := range o.overrides {
			own[value.Hash] = max(own[value.Hash], value.Limit)
			if !o.ofAll[value.Hash] {
				times[value.Hash]++
			}
		}
	}
	for hash := range own {
		if times[hash] < versions {
			own[hash] = max(own[hash], w.limit) // it had that of all for a time
		}
	}
	return own
}

// limitOf returns the limit of a value in the window.
func (w *valueWindow) limitOf(hash string) int64 {
	if limit, ok := w.own[hash]; ok {
		return limit
	}
	return w.limit
}
