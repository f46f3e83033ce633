package simulate

import "github.com/weir-dev/weir/pkg/limiter"

// An auditor counts what is let through, and by the store's clock when. It is given
// true time and never what the holders or the store believe, except where clocks are set.
// Then one instant may come twice, so it counts by the number of the window that was granted
// from.
type auditor struct {
	promises  []promise
	numbered  []*windows
	overshoot int64 // the most admitted beyond a promise
	usage     usage

	offered, admitted, refused int64 // units
}

// A promise is what a rate of an algorithm allows.
type promise interface {
	// admit notes units that were let through at t, and returns by how many
	// they are beyond the promise, 0 when they are not.
	admit(t limiter.Instant, units int64) int64
}

func newAuditor(p limiter.Params, warm limiter.Instant, numbered bool) *auditor {
	a := &auditor{usage: usage{rate: p.Rates[0], warm: warm}}
	for _, r := range p.Rates {
		if numbered {
			a.numbered = append(a.numbered, &windows{rate: r, used: map[int64]int64{}})
		} else {
			a.promises = append(a.promises, promiseOf(p.Algorithm, r))
		}
	}
	return a
}

func promiseOf(algorithm limiter.Algorithm, r limiter.Rate) promise {
	switch algorithm {
	case limiter.FixedWindow:
		return &windowed{rate: r, limit: r.Limit}
	case limiter.SlidingWindow, limiter.SlidingLog:
		return &sliding{rate: r}
	default:
		return &bucket{rate: r}
	}
}

func (a *auditor) offer(t limiter.Instant, units int64) {
	a.offered += units
	a.usage.at(t).offered += units
}

func (a *auditor) admit(t limiter.Instant, units int64, of *limiter.Windows) {
	a.admitted += units
	a.usage.at(t).admitted += units
	for _, p := range a.promises {
		a.overshoot = max(a.overshoot, p.admit(t, units))
	}
	for _, w := range a.numbered {
		a.overshoot = max(a.overshoot, w.admit(of, units))
	}
}

// ask notes a call to the store.
func (a *auditor) ask(t limiter.Instant) { a.usage.at(t).asked++ }

// inForce notes from t on what the largest limit is that anybody enforces, by the
// length of the window. A window in which it falls may still hold what it was before.
func (a *auditor) inForce(t limiter.Instant, largest func(limiter.Micros) int64) {
	a.usage.at(t)
	a.usage.rate.Limit = largest(a.usage.rate.Window)
	for _, p := range a.promises {
		if w, ok := p.(*windowed); ok {
			w.roll(t)
			w.rate.Limit = largest(w.rate.Window)
			w.limit = max(w.limit, w.rate.Limit)
		}
	}
}

// A usage is how much of a rate was used.
type usage struct {
	rate limiter.Rate
	warm limiter.Instant // windows that begin earlier do not count

	index             int64
	offered, admitted int64 // in the window
	asked             int64
	// In windows that are over.
	windows    int64
	could, did int64 // what could be admitted, and was
	trips      int64
}

// at begins a new window when it is time.
func (u *usage) at(t limiter.Instant) *usage {
	if w := u.rate.WindowAt(t); w.Index != u.index {
		if last := w.Start() - limiter.Instant(u.rate.Window); u.index != 0 && u.warm <= last {
			u.could += min(u.offered, u.rate.Limit)
			u.did += u.admitted
			u.trips += u.asked
			u.windows++
		}
		u.index, u.offered, u.admitted, u.asked = w.Index, 0, 0, 0
	}
	return u
}

// roundTrips returns how often the store was asked in a window.
func (u *usage) roundTrips() float64 { return float64(u.trips) / float64(max(1, u.windows)) }

// utilization returns what was admitted of what could have been.
func (u *usage) utilization() float64 {
	if u.could == 0 {
		return 1
	}
	return float64(u.did) / float64(u.could)
}

// A windowed rate promises Limit in each aligned window.
type windowed struct {
	rate  limiter.Rate
	index int64
	used  int64
	limit int64 // the largest that was in force in the window
}

func (w *windowed) admit(t limiter.Instant, units int64) int64 {
	w.roll(t)
	w.used += units
	return max(0, w.used-w.limit)
}

func (w *windowed) roll(t limiter.Instant) {
	if index := w.rate.WindowAt(t).Index; index != w.index {
		w.index, w.used, w.limit = index, 0, w.rate.Limit
	}
}

// Windows promise Limit in each of them, whenever it is open.
type windows struct {
	rate limiter.Rate
	used map[int64]int64 // by number
}

func (w *windows) admit(of *limiter.Windows, units int64) (most int64) {
	for _, open := range of.Slice() {
		if open.Window == w.rate.Window {
			w.used[open.Index] += units
			most = max(most, w.used[open.Index]-w.rate.Limit)
		}
	}
	return most
}

// A sliding rate promises Limit in every interval [t, t+Window).
type sliding struct {
	rate limiter.Rate
	log  []limiter.Entry
	used int64
}

func (s *sliding) admit(t limiter.Instant, units int64) int64 {
	old := 0
	for old < len(s.log) && s.log[old].At.Add(s.rate.Window) <= t {
		s.used -= s.log[old].Count
		old++
	}
	s.log = append(s.log[old:], limiter.Entry{At: t, Count: units})
	s.used += units
	return max(0, s.used-s.rate.Limit)
}

// A bucket promises Burst + Limit·x/Window in every interval of length x. It fills
// by what is admitted and drains at the rate: its level above the burst is the overshoot of
// the worst interval that ends now.
type bucket struct {
	rate  limiter.Rate
	level float64
	at    limiter.Instant
}

func (b *bucket) admit(t limiter.Instant, units int64) int64 {
	perMicro := float64(b.rate.Limit) / float64(b.rate.Window)
	b.level = max(0, b.level-float64(t.Sub(b.at))*perMicro) + float64(units)
	b.at = t
	burst := b.rate.Burst
	if burst == 0 {
		burst = b.rate.Limit
	}
	const rounding = 1e-6
	return max(0, int64(b.level-float64(burst)+1-rounding))
}
