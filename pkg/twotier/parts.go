package twotier

import (
	"time"

	"github.com/weir-dev/weir/pkg/store"
)

// forgetAfter is how long a part is remembered that nobody asks for any more.
const forgetAfter = time.Minute

// doorOf returns the door of the part that the key is in, nil when none such has failed;
// mu is held.
func (g *Gate) doorOf(key store.Key) *door {
	for part, d := range g.parts {
		if part.Has(key) {
			return d
		}
	}
	return nil
}

// forget drops parts that nobody asks for any more; mu is held.
func (g *Gate) forget(now int64) {
	for part, d := range g.parts {
		if !d.probing && now-d.retryAt > int64(forgetAfter) {
			delete(g.parts, part)
		}
	}
}

// concern calls f for the doors of the store and of its parts but for other limits; mu
// is held.
func (g *Gate) concern(limit store.Scope, f func(*door)) {
	f(&g.whole)
	for part, d := range g.parts {
		if other, ok := part.(store.Scope); !ok || other == limit {
			f(d)
		}
	}
}
