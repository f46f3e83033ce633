package audit

import (
	"cmp"
	"slices"
)

// shownHottest is how many of the hottest keys figures name.
const shownHottest = 10

// hottest returns the keys that holders were asked for most. Each holder names its
// own; a key that is hot only over all of them may be missing.
func (l *Limit) hottest() []KeyCount {
	if !l.keyed {
		return nil
	}
	sums := map[string]KeyCount{}
	for _, m := range l.members {
		for _, k := range m.hottest {
			sum := sums[k.Hash]
			sums[k.Hash] = KeyCount{Hash: k.Hash, Admitted: sum.Admitted + k.Admitted, Refused: sum.Refused + k.Refused}
		}
	}
	all := make([]KeyCount, 0, len(sums))
	for _, k := range sums {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b KeyCount) int {
		return cmp.Or(cmp.Compare(b.Admitted+b.Refused, a.Admitted+a.Refused), cmp.Compare(a.Hash, b.Hash))
	})
	return all[:min(len(all), shownHottest)]
}
