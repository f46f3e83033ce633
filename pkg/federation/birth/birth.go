package birth

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// A Birth is what is remembered of one budget. The zero value is that of one that may have
// been granted units by anybody. It is a value: no method writes to what it was given.
type Birth struct {
	// Ledger is where the budget is kept, "" when that does not vouch for it.
	Ledger string `json:"ledger,omitempty"`
	// Memory is the term of the first memory of the ledger that was met, 0 for none yet.
	Memory int64 `json:"memory,omitempty"`
	// Members are all that were ever listed, ordered.
	Members []string `json:"members,omitempty"`
}

// New returns the birth of a budget that the cluster did not know, and that lists these
// members, ordered by name.
func New(ledger string, members []string) Birth {
	return Birth{Ledger: ledger, Members: slices.Clone(members)}
}

// Follow goes on with where the budget is kept now, and which members it lists. One that
// is kept elsewhere may have been granted units there, and a member that is not listed
// any more is not asked what it was granted: neither is vouched for again.
func (b Birth) Follow(ledger string, members []string) Birth {
	switch {
	case b.Ledger == "" || b.Ledger != ledger || !covers(members, b.Members):
		return Birth{}
	case len(members) > len(b.Members):
		b.Members = slices.Clone(members)
	}
	return b
}

// Meet notes that a memory of the ledger was met, unless it is not the first.
func (b Birth) Meet(term int64) Birth {
	if b.Ledger != "" && b.Memory == 0 {
		b.Memory = term
	}
	return b
}

// Unmet reports whether a memory has to be met before anything is asked of the ledger.
func (b Birth) Unmet() bool { return b.Ledger != "" && b.Memory == 0 }

// Vouch returns what commands say that name these members: ledger.Command's Born and List.
func (b Birth) Vouch(members []string) (born, list int64) {
	if b.Memory == 0 || !covers(members, b.Members) {
		return 0, 0
	}
	return b.Memory, listOf(members)
}

// Equal reports whether both are the same.
func (b Birth) Equal(o Birth) bool {
	return b.Ledger == o.Ledger && b.Memory == o.Memory && slices.Equal(b.Members, o.Members)
}

// covers reports whether all of some are in a list. Both are ordered.
func covers(list, some []string) bool {
	for _, name := range some {
		if _, found := slices.BinarySearch(list, name); !found {
			return false
		}
	}
	return true
}

// listOf returns a number that stands for the members, from 1 to 2^52.
func listOf(members []string) int64 {
	h := sha256.New()
	for _, name := range members {
		_, _ = h.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(name))), name...))
	}
	return int64(binary.BigEndian.Uint64(h.Sum(nil))>>12) + 1
}
