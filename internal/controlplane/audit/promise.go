package audit

import (
	"iter"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Config is what a limit promises in one generation of its policy.
type Config struct {
	Generation int64
	// Since is when the store began to serve the limit, on its own clock; 0 for the store
	// that served first. Every move to another store begins a period with windows of its
	// own, also under the same generation.
	Since   limiter.Instant
	Promise Promise // to every counter
	Keyed   bool
	// Clusters is how many share what a key is promised, 0 for this one alone. For a
	// key that was admitted more than its part here, the exact counts are had; see Values.
	Clusters int64
	// Overrides are what single keys, by their hash, are promised instead. Holders
	// name those keys in every row.
	Overrides map[string]Promise
	// Carry is how many units a holder may carry into a window.
	Carry int64
	// Unsettled says that requests are let through before it is known what they cost,
	// so that nothing bounds what a window admits.
	Unsettled bool
	// Resume says that the store goes on with the counts that are left when it loses its
	// memory, so that each loss may admit once more what is promised.
	Resume bool
	// Reset is when a counter was set back last, on the store's clock; 0 for never.
	// Nothing bounds what the windows that were open then admit.
	Reset limiter.Instant
}

// promisesAs reports whether counters are promised the same.
func (c *Config) promisesAs(other *Config) bool {
	return c.Keyed == other.Keyed && c.Clusters == other.Clusters &&
		reflect.DeepEqual(c.Promise, other.Promise) && maps.EqualFunc(c.Overrides, other.Overrides, func(a, b Promise) bool { return reflect.DeepEqual(a, b) })
}

// rates returns those of every counter, each window once.
func (c *Config) rates() []limiter.Rate {
	var all []limiter.Rate
	for p := range c.promises() {
		for _, r := range p.Rates {
			if !slices.ContainsFunc(all, func(other limiter.Rate) bool { return windowsOf(other) == windowsOf(r) }) {
				all = append(all, r)
			}
		}
	}
	return all
}

// promises yields that to every counter and those to single ones.
func (c *Config) promises() iter.Seq[Promise] {
	return func(yield func(Promise) bool) {
		if !yield(c.Promise) {
			return
		}
		for _, hash := range slices.Sorted(maps.Keys(c.Overrides)) {
			if !yield(c.Overrides[hash]) {
				return
			}
		}
	}
}

// A Promise is what one counter keeps to.
type Promise struct {
	Rates []limiter.Rate
	// Most is what a window of each rate may admit: the limit, and for algorithms
	// without windows the burst on top. Empty stands for the limits.
	Most []int64
}

// of returns the ceiling in windows of a rate; zero when the limit has no such rate.
func (p Promise) of(windows limiter.Rate) ceiling {
	for i, r := range p.Rates {
		switch {
		case windowsOf(r) != windows:
		case len(p.Most) > 0:
			return ceiling{most: p.Most[i], limit: r.Limit}
		default:
			return ceiling{most: r.Limit, limit: r.Limit}
		}
	}
	return ceiling{}
}

// A legacy is the most that generations promise which holders may still enforce.
type legacy struct {
	most      map[limiter.Rate]int64 // by what windowsOf returns
	carry     int64
	unsettled bool
	resume    bool
}

// remember keeps what the generation that ends promises for the windows that mix it
// with the next one.
func (l *Limit) remember(now time.Time) {
	recent := now.Sub(l.changed) <= l.longest+(slackReports+silentRounds)*l.interval
	if l.before.most == nil || !recent && !l.lagging() {
		l.before = legacy{most: map[limiter.Rate]int64{}}
	}
	for p := range l.promised.promises() {
		for _, r := range p.Rates {
			l.before.most[windowsOf(r)] = max(l.before.most[windowsOf(r)], p.of(windowsOf(r)).most)
		}
	}
	l.before.carry = max(l.before.carry, l.promised.Carry)
	l.before.unsettled = l.before.unsettled || l.promised.Unsettled
	l.before.resume = l.before.resume || l.promised.Resume
}

// mixes reports whether holders may have worked by different generations in w.
func (l *Limit) mixes(w *window) bool { return !w.began.After(l.changed) || l.lagging() }

func (l *Limit) lagging() bool {
	for _, m := range l.members {
		if m.reported && m.generation < l.generation {
			return true
		}
	}
	return false
}

// A ceiling is what one counter may admit in a window, and what it can expect to.
type ceiling struct{ most, limit int64 }

// ceilings returns the ceiling of a key.
type ceilings func(hash string) ceiling

// ceilingsOf returns what holds in w: while holders go over to another generation, the
// largest that one of them worked by.
func (l *Limit) ceilingsOf(w *window) ceilings {
	var claimed, before int64
	if l.mixes(w) {
		claimed, before = w.claimed, l.before.most[w.id.windows]
	}
	of := func(p Promise) ceiling {
		c := p.of(w.id.windows)
		return ceiling{most: max(c.most, claimed, before), limit: max(c.limit, claimed)}
	}
	every := of(l.promised.Promise)
	return func(hash string) ceiling {
		if p, ok := l.promised.Overrides[hash]; ok {
			return of(p)
		}
		return every
	}
}
