package keys

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Groups is the number of groups that keys are in.
const Groups = 1024

// An Aside is how many units of a window each key may have been granted. It is a value: no
// method writes to what it was given. The zero Aside is of nothing.
type Aside struct {
	Length limiter.Micros `json:"window"` // of the window
	Index  int64          `json:"index"`  // of the window
	Base   int64          `json:"base"`   // of every key
	// Marks are of the groups with a key that may have been granted more than Base.
	Marks []Mark `json:"marks,omitempty"`
	// Shared is how many counters there are for keys that share one; 0: no key has.
	Shared int `json:"shared,omitempty"`
}

// A Mark is how many units each key of a group may have been granted. Marks are ordered by
// group.
type Mark struct {
	Group int   `json:"g"`
	Units int64 `json:"u"`
}

func (m Mark) compare(group int) int { return cmp.Compare(m.Group, group) }

// is reports whether it is of the window.
func (a Aside) is(w Window) bool { return a.Index == w.Index && a.Length == w.Length }

// Of returns how many units of the window each key of a group may have been granted. It knows
// nothing of other windows.
func (a Aside) Of(w Window, group int) int64 {
	if !a.is(w) {
		return 0
	}
	if i, ok := slices.BinarySearchFunc(a.Marks, group, Mark.compare); ok {
		return max(a.Base, a.Marks[i].Units)
	}
	return a.Base
}

// raised returns the Aside with marks at least as high as those of wants.
func (a Aside) raised(wants map[int]int64) Aside {
	marks := make([]Mark, len(a.Marks), len(a.Marks)+len(wants))
	copy(marks, a.Marks)
	for group, units := range wants {
		if units <= a.Base {
			continue
		}
		i, ok := slices.BinarySearchFunc(marks, group, Mark.compare)
		if !ok {
			marks = slices.Insert(marks, i, Mark{Group: group})
		}
		marks[i].Units = max(marks[i].Units, units)
	}
	if len(marks) > 0 {
		a.Marks = marks
	}
	return a
}

// Validate reports what no coordinator wrote.
func (a Aside) Validate() error {
	if a.Length < 0 || a.Length > limiter.MaxWindow || a.Index < 0 || a.Index > int64(limiter.MaxInstant) {
		return fmt.Errorf("keys of window %d of %dµs", a.Index, a.Length)
	}
	if a.Base < 0 || a.Base > limiter.MaxLimit {
		return fmt.Errorf("keys with a base of %d units", a.Base)
	}
	if a.Shared < 0 || int64(a.Shared) > ledger.MaxKeys {
		return fmt.Errorf("keys that share %d counters", a.Shared)
	}
	for i, m := range a.Marks {
		if m.Group < 0 || m.Group >= Groups || m.Units < 1 || m.Units > limiter.MaxLimit || i > 0 && a.Marks[i-1].Group >= m.Group {
			return fmt.Errorf("keys of group %d with %d units, as entry %d", m.Group, m.Units, i)
		}
	}
	return nil
}
