package count

import (
	"slices"
	"strings"
)

// maxLeaders is how many keys of a row are kept apart as those asked for most.
const maxLeaders = 32

// leaders are the keys of one row that were asked for most. Most events that are
// of no leader cost one comparison: floor rises with the least of the leaders, and
// only a key that is above it looks at them.
type leaders struct {
	keys  []leader // at most maxLeaders
	floor int64    // no other key was asked for more
}

// A leader is a key and its tally in the row.
type leader struct {
	value string
	tally *tally
}

// note says that the key was asked for once more.
func (l *leaders) note(value string, t *tally) {
	switch {
	case t.offered() <= l.floor || l.has(t):
	case len(l.keys) < maxLeaders:
		l.keys = append(l.keys, enlist(value, t))
	default:
		least := l.least()
		l.floor = least.tally.offered()
		if t.offered() > l.floor {
			*least = enlist(value, t)
		}
	}
}

func (l *leaders) has(t *tally) bool {
	return slices.ContainsFunc(l.keys, func(k leader) bool { return k.tally == t })
}

func enlist(value string, t *tally) leader { return leader{value: strings.Clone(value), tally: t} }

func (l *leaders) least() *leader {
	least := &l.keys[0]
	for i := range l.keys[1:] {
		if k := &l.keys[i+1]; k.tally.offered() < least.tally.offered() {
			least = k
		}
	}
	return least
}
