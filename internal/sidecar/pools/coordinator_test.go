package pools

import (
	"context"
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
)

// newest remembers the largest number that it heard.
type newest struct{ seq int64 }

func (n *newest) Apply(_ context.Context, _ pool.Key, _ pool.Params, c pool.Command) (pool.Grant, error) {
	n.seq = max(n.seq, c.Seq)
	return pool.Grant{Seq: c.Seq}, nil
}

// TestAGuardThatLeavesLateIsNotHeard has the guard before go on after the next began: no
// number of its is above one of the next, so its leave gives up nothing.
func TestAGuardThatLeavesLateIsNotHeard(t *testing.T) {
	heard := new(newest)
	before, next := number(heard, 0), number(heard, 1)
	say := func(n *numbered, seq int64) {
		t.Helper()
		if g, err := n.Apply(t.Context(), pool.Key{}, pool.Params{}, pool.Command{Seq: seq}); err != nil || g.Seq != seq {
			t.Errorf("command %d was answered as %d, %v", seq, g.Seq, err)
		}
	}
	say(before, 1)
	say(next, 1)
	began := heard.seq
	say(before, 1000)
	if heard.seq != began {
		t.Errorf("number %d of the guard before is above %d of the next", heard.seq, began)
	}
}
