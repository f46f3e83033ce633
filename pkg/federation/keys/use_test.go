package keys_test

import (
	"testing"

	"github.com/weir-dev/weir/pkg/federation/keys"
)

func TestASliceIsUsedOnceInAWindow(t *testing.T) {
	var u keys.Use
	for i, c := range []struct{ index, slice, low, want, got int64 }{
		{5, 4, 1, 3, 3},
		{5, 4, 2, 3, 0}, // fewer than the least are left
		{5, 4, 1, 3, 1},
		{5, 4, 1, 1, 0},
		{5, 2, 1, 1, 0}, // it shrank
		{4, 4, 1, 1, 0}, // a window before
		{6, 4, 1, 9, 4},
	} {
		var got int64
		if u, got = u.Take(c.index, c.slice, c.low, c.want); got != c.got {
			t.Errorf("take %d: %d units, want %d", i, got, c.got)
		}
	}
}
