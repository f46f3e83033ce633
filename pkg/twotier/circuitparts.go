package twotier

import (
	"time"

	"github.com/weir-dev/weir/pkg/store"
)

// partTTL is how long a part is remembered that nobody asks for any more.
const partTTL = time.Minute

// partCircuit returns the circuit of the part that the key is in, nil when none such has failed;
// mu is held.
func (b *Breaker) partCircuit(key store.Key) *circuit {
	for part, c := range b.parts {
		if part.Has(key) {
			return c
		}
	}
	return nil
}

// dropIdleParts drops parts that nobody asks for any more; mu is held.
func (b *Breaker) dropIdleParts(now int64) {
	for part, c := range b.parts {
		if !c.probing && now-c.retryAt > int64(partTTL) {
			delete(b.parts, part)
		}
	}
}

// eachCircuit calls f for the circuits of the store and of its parts but for other limits; mu
// is held.
func (b *Breaker) eachCircuit(limit store.Scope, f func(*circuit)) {
	f(&b.circuit)
	for part, c := range b.parts {
		if other, ok := part.(store.Scope); !ok || other == limit {
			f(c)
		}
	}
}
