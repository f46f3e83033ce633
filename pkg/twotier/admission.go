package twotier

import "github.com/weir-dev/weir/pkg/store"

// An admission is a call that the breaker let through.
type admission struct {
	key        store.Key
	epoch      int
	part       *circuit // of the part that the key is in, nil when none such has failed
	partEpoch  int      // its epoch
	connection uint64
}

// admit admits a call for the key, or says why not.
func (b *Breaker) admit(key store.Key) (admission, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.checkConnection()
	now, v := b.clock.now(), admission{key: key, part: b.partCircuit(key), connection: b.connection}
	if err := b.circuit.check(now); err != nil {
		return v, err
	}
	if v.part != nil {
		if err := v.part.check(now); err != nil {
			return v, err
		}
		v.partEpoch = v.part.admit()
	}
	v.epoch = b.circuit.admit()
	return v, nil
}

// failedLast reports whether the latest call failed that the counter's next one may fail with.
func (b *Breaker) failedLast(key store.Key) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.partCircuit(key)
	return !b.circuit.since.IsZero() || c != nil && !c.since.IsZero()
}

// unavailable returns why every call would fail at once, nil when one would not.
func (b *Breaker) unavailable() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.checkConnection()
	return b.circuit.check(b.clock.now())
}

func (b *Breaker) succeeded(v admission, r callResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.offset = b.offset.Observe(r.Sent, r.Received, r.Now)
	b.seen = max(b.seen, r.Now)
	b.latency = max(r.Received-r.Sent, b.latency-b.latency/8, 1)
	b.circuit.succeeded()
	for part := range b.parts {
		if part.Has(v.key) {
			delete(b.parts, part)
		}
	}
}

// failed records a failure of the part, nil for the whole store.
func (b *Breaker) failed(v admission, part store.Part, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.now()
	if part == nil {
		b.circuit.failed(v.epoch, cause, now, b.clock.random)
		b.releasePart(v)
		return
	}
	b.circuit.release(v.epoch)
	c := b.parts[part]
	if c != v.part { // it failed meanwhile, or answered: this says nothing new
		b.releasePart(v)
		return
	}
	if c == nil {
		b.dropIdleParts(now)
		c = &circuit{seen: b.seen}
		b.parts[part] = c
	}
	c.failed(v.partEpoch, cause, now, b.clock.random)
}

// release ends a call that says nothing about the store.
func (b *Breaker) release(v admission) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.circuit.release(v.epoch)
	b.releasePart(v)
}

func (b *Breaker) releasePart(v admission) {
	if v.part != nil {
		v.part.release(v.partEpoch)
	}
}
