package suite_test

import (
	"slices"
	"testing"

	"github.com/weir-dev/weir/internal/testing/suite"
)

func TestChosen(t *testing.T) {
	yields := func(choices []byte, n int) (all []uint64) {
		d := suite.Chosen(choices)
		for range n {
			all = append(all, d())
		}
		return all
	}
	a, again, other := yields([]byte{7, 255}, 20), yields([]byte{7, 255}, 20), yields([]byte{7, 254}, 20)
	if a[0] != 7 || a[1] != 255 {
		t.Errorf("the first choices are %d, want 7 and 255", a[:2])
	}
	if !slices.Equal(a, again) {
		t.Errorf("the same bytes chose %d and %d", a, again)
	}
	if slices.Equal(a[2:], other[2:]) {
		t.Errorf("other bytes chose the same: %d", a[2:])
	}
}

func TestDiceStayInRange(t *testing.T) {
	d := suite.Chosen(nil)
	seen := map[int64]bool{}
	for range 1000 {
		seen[d.Below(3)] = true
	}
	if len(seen) != 3 || !seen[0] || !seen[1] || !seen[2] {
		t.Errorf("numbers below 3 are %v", seen)
	}
	if always := suite.Dice(func() uint64 { return 6 }); !always.OneIn(3) || always.OneIn(4) || suite.OneOf(always, []string{"a", "b", "c", "d"}) != "c" {
		t.Error("a six is not what it should be")
	}
}
