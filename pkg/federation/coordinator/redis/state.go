package redis

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

const (
	layout    = 1  // VERSION of lua/wire.lua
	lineBytes = 54 // of the line that identifies an instance
)

// A record is what lua/memory.lua keeps of a budget.
type record struct {
	ledger.Memory
	ledger.State
	vouches []vouch
	tenants []said
}

// said is what a member said of its tenants, with the weight it was said with: scripts of
// versions that do not know it leave it behind.
type said struct {
	member string
	weight int64
	ledger.Tenants
}

// A vouch is one with the term of the memory it is for: scripts of versions that know none
// leave it behind.
type vouch struct {
	term int64
	ledger.Vouch
}

// decodeState reads the fields of a budget's hash.
func decodeState(reply any) (ledger.State, error) {
	r, err := decodeRecord(reply)
	return r.State, err
}

func decodeRecord(reply any) (record, error) {
	list, _ := reply.([]any)
	var out record
	for i := 0; i+1 < len(list); i += 2 {
		field, _ := list[i].(string)
		value, _ := list[i+1].(string)
		if err := out.add(field, &reader{rest: value}); err != nil {
			return record{}, err
		}
	}
	slices.SortFunc(out.Accounts, func(a, b ledger.Account) int {
		return cmp.Or(cmp.Compare(a.Member, b.Member), cmp.Compare(a.Holder, b.Holder))
	})
	slices.SortFunc(out.Standings, func(a, b ledger.Standing) int { return cmp.Compare(a.Member, b.Member) })
	for _, t := range out.tenants {
		for i := range out.Standings {
			if of := &out.Standings[i]; of.Member == t.member && of.Weight == t.weight {
				of.Tenants = t.Tenants
			}
		}
	}
	for _, v := range out.vouches {
		if v.term == out.Memory.Term {
			out.Vouches = append(out.Vouches, v.Vouch)
		}
	}
	slices.SortFunc(out.Vouches, func(a, b ledger.Vouch) int { return cmp.Compare(a.Member, b.Member) })
	slices.SortFunc(out.Closed, func(a, b ledger.Closed) int { return cmp.Compare(b.Index, a.Index) })
	return out, nil
}

// add reads one field.
func (o *record) add(field string, r *reader) error {
	name := reader{rest: field}
	switch kind := name.byte(); kind {
	case 'm':
		o.head(r)
	case 'a':
		o.Accounts = append(o.Accounts, ledger.Account{Member: name.text(), Holder: name.rest, Seq: r.int(), Granted: r.int()})
	case 'v':
		o.vouches = append(o.vouches, vouch{r.int(), ledger.Vouch{Member: name.take(len(name.rest)), List: r.int()}})
	case 't':
		for len(r.rest) > 0 {
			o.tenants = append(o.tenants, said{r.text(), r.int(), ledger.Tenants{Met: r.int(), Unmet: r.int()}})
		}
	case 'c':
		o.Closed = append(o.Closed, closed(r))
	default:
		return fmt.Errorf("the budget has a field %q, which this version does not know", field)
	}
	if r.short || name.short || len(r.rest) > 0 {
		return fmt.Errorf("the budget has a field %q that this version cannot read", field)
	}
	return nil
}

func (o *record) head(r *reader) {
	if r.byte() != layout {
		r.short = true
		return
	}
	r.take(lineBytes)
	o.Memory = ledger.Memory{Term: r.int(), Since: limiter.Instant(r.int())}
	s := &o.State
	s.Window, s.Index, s.Term, s.Limit = limiter.Micros(r.int()), r.int(), r.int(), r.int()
	s.Before, s.Latest = r.int(), limiter.Instant(r.int())
	for range r.count() {
		s.Standings = append(s.Standings, ledger.Standing{
			Member: r.text(), Seen: limiter.Instant(r.int()), Weight: r.int(),
			Demand: r.int(), Before: r.int(), Slice: r.int(), Next: r.int(), Told: r.int(),
		})
		r.take(2 * 8) // what its accounts add up to
	}
	r.take(len(r.rest)) // the indices of windows that are over
}

func closed(r *reader) ledger.Closed {
	c := ledger.Closed{Index: r.int(), Limit: r.int(), Granted: r.int()}
	for range r.count() {
		u := ledger.MemberUsage{Member: r.text(), Granted: r.int(), Admitted: r.int(), Refused: r.int()}
		u.Reported, u.Complete = r.byte() == 1, r.byte() == 1
		c.Usage = append(c.Usage, u)
	}
	slices.SortFunc(c.Usage, func(a, b ledger.MemberUsage) int { return cmp.Compare(a.Member, b.Member) })
	return c
}
