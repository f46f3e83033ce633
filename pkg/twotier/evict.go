package twotier

// A use says what a key is good for, and so in which order keys make room for others.
type use uint8

const (
	useless  use = iota // nothing that it knows of the store matters any more
	spent               // it would have to ask the store before it admits again
	refusing            // it spares the store requests that would be refused
	needed              // it has credits, or is deciding, or admits on the local share
)

// use returns what the key is good for at the instant now; mu is held.
func (k *Key) use(now int64) use {
	if k.inflight != nil || k.hasLocalWindow(now) {
		return needed
	}
	var x rareState
	if k.rare != nil {
		x = *k.rare
	}
	e := k.lease.Load()
	switch {
	case e.held(now) > 0 || x.back.Held(now) > 0 || x.local != nil:
		return needed
	case now < e.info.Until || x.debt > 0 && now < e.deadline:
		return refusing
	case x.debt > 0 || now < e.deadline:
		return spent
	default:
		return useless
	}
}

// evict marks the key as gone if it is of no more use than most, and returns its use.
// The store remembers what a spent key forgets. A key that is locked is needed, and
// waiting for it here would turn the order of locks around.
func (k *Key) evict(now int64, most use) use {
	if !k.mu.TryLock() {
		return needed
	}
	defer k.mu.Unlock()
	is := k.use(now)
	k.evicted = is <= most
	return is
}
