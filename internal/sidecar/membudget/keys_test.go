package membudget

import "testing"

// fill takes 100 bytes at a time until there are no more.
func fill(take func(int64) bool) (n int64) {
	for take(100) {
		n += 100
	}
	return n
}

// TestKeysLeaveHalf to everything else, and some to counters that keys share, and to counts.
func TestKeysLeaveHalf(t *testing.T) {
	const size = 1_600_000 // connections and keys may use 1,500,000 of it
	b := New(size)
	keys, counts := b.ForKeys(), b.ForCounts()
	own := func(n int64) bool { return keys.Take(n, false) }
	shared := func(n int64) bool { return keys.Take(n, true) }
	if got := fill(own); got != 750_000 {
		t.Errorf("keys take %d alone, want half of 1,500,000", got)
	}
	if got := fill(shared); got != 250_000 {
		t.Errorf("shared counters take %d more, want as much as makes two thirds", got)
	}
	if got := fill(counts.Take); got != 166_600 {
		t.Errorf("counts take %d beside them, want a third of the rest", got)
	}
	if b.Refused(Keys) != 2 || b.Refused(Counts) != 1 {
		t.Errorf("refused %d keys and %d counts, want 2 and 1", b.Refused(Keys), b.Refused(Counts))
	}
	keys.Give(b.Taken(Keys))
	counts.Give(b.Taken(Counts))
	if b.total() != 0 {
		t.Errorf("%d bytes are kept", b.total())
	}
}

// TestKeysFindMemoryBesideConnections: an address that takes all it may leaves some.
func TestKeysFindMemoryBesideConnections(t *testing.T) {
	b := New(1 << 20)
	port := b.Port(false)
	p := new(peer)
	if got := fill(func(n int64) bool { return b.try(Connections, n, port.bound, p) == none }); got < port.bound/2 {
		t.Fatalf("the address takes %d of %d", got, port.bound)
	}
	if got, least := fill(func(n int64) bool { return b.ForKeys().Take(n, false) }), port.bound/11; got < least {
		t.Errorf("keys take %d beside it, want half of its fifth", got)
	}
}
