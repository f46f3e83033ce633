package journal

import (
	"math"

	"github.com/weir-dev/weir/pkg/limiter"
)

// An Account is what this term granted of one counter, beside its state. Journal.Account
// makes one.
type Account struct {
	// The record that was acknowledged last bounds what may be granted, and so does the
	// one of number seq, until it is acknowledged: either may be the one that survives.
	last, next bound
	seq        uint64 // 0 for none
	opened     uint64 // of the section

	lost      int64           // of the counter's state, as Entry.Lost
	remaining int64           // that the limit had left when it was last asked
	asked     int64           // since the counter was entered last, whether granted or not
	waiting   int64           // that could not be granted since
	entered   limiter.Instant // when that was, 0 for never
}

// A bound is what one record lets be granted.
type bound struct {
	own   bool  // the counter has an entry, otherwise aside is the limit's
	aside int64 // of the entry
	spent int64 // granted since the entry was made
}

func (b bound) left(shared int64) int64 {
	if b.own {
		return b.aside - b.spent
	}
	return shared - b.spent
}

// settle has the record in flight be the last one, once it is acknowledged.
func (a *Account) settle(acked uint64) {
	if a.seq != 0 && a.seq <= acked {
		a.last, a.next, a.seq = a.next, bound{}, 0
	}
}

// left returns how much may still be granted when every counter without an entry may be
// granted that much.
func (a *Account) left(shared int64) int64 {
	left := a.last.left(shared)
	if a.seq != 0 {
		left = min(left, a.next.left(shared))
	}
	return max(0, left)
}

// spend enters a grant.
func (a *Account) spend(n int64) {
	a.last.spent += n
	a.next.spent += n
	a.asked = plus(a.asked, n)
}

// forgive forgets what was granted, since none of it counts any more. The charge of a
// successor counts from when it begins, so it makes good for what is granted from now
// on.
func (a *Account) forgive() { a.last.spent, a.next.spent, a.lost = 0, 0, 0 }

// low reports whether half of the units that may be granted are granted.
func (a *Account) low(shared int64) bool {
	b := a.last
	if a.seq != 0 {
		b = a.next
	}
	return a.waiting > 0 || b.left(shared) < b.spent
}

func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
