package notices

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// quiet is how long a name is not named again until it is passed on.
	quiet = 50 * time.Millisecond
	// most is how long a name waits for that at most.
	most = 500 * time.Millisecond
)

// A gathering knows which names are to be passed on. The first change of a name is passed on at once. Those
// that follow it closely are one, which comes when they are over, or most after the first of them.
type gathering map[types.NamespacedName]recent

// A recent name is one that was named or passed on a moment ago.
type recent struct {
	last  time.Time // when it was named or passed on
	since time.Time // when the first change came that was not passed on; zero for none
}

// add notes that a name changed, and reports whether that is to be passed on at once.
func (g gathering) add(name types.NamespacedName, now time.Time) bool {
	r, known := g[name]
	if r.last = now; known && r.since.IsZero() {
		r.since = now
	}
	g[name] = r
	return !known
}

// due returns the names that are to be passed on now, and forgets those that nothing was heard of.
func (g gathering) due(now time.Time) []types.NamespacedName {
	var out []types.NamespacedName
	for name, r := range g {
		over, waits := now.Sub(r.last) >= quiet, !r.since.IsZero()
		switch {
		case waits && (over || now.Sub(r.since) >= most):
			out = append(out, name)
			g[name] = recent{last: now}
		case over:
			delete(g, name)
		}
	}
	return out
}
