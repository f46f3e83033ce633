package budgetaudit

import (
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// An Outcome is what is known of one window of a budget with a key.
type Outcome struct {
	Index             int64
	Measured          bool     // nothing is missing; otherwise Over is the least it can be
	Silent            []string // members that have not reported all that is needed
	Over              int64    // Δ: the most that a value was admitted beyond the limit
	Unused            int32    // U: the largest of a value, in basis points of the limit
	Admitted, Refused int64    // over all values and members, as far as known
}

// An Answer is what the audit says to a member.
type Answer struct {
	Wanted   []Wanted // of the member
	Outcomes []Outcome
}

// EnterValues is Enter for a budget with a key: the outcomes say what is known of its
// windows over all members. A window without an outcome lacks what every member
// counted.
func (b *Budget) EnterValues(s ledger.State, outcomes []Outcome, now limiter.Instant) {
	b.takeOver(&s, now, func(i int) review {
		for _, o := range outcomes {
			if o.Index == s.Closed[i].Index {
				return b.reviewValues(&s, i, o)
			}
		}
		var r review
		for _, u := range s.Closed[i].Usage {
			r.silent = append(r.silent, u.Member)
		}
		return r
	})
}

// reviewValues looks at what is known of a window of a budget with a key. Each value may have
// been granted the limit that was in force before it was lowered.
func (b *Budget) reviewValues(s *ledger.State, closed int, o Outcome) review {
	c := &s.Closed[closed]
	r := review{measured: o.Measured, silent: o.Silent}
	b.traffic = b.traffic || o.Admitted > 0 || o.Refused > 0
	bound := highest(&ledger.State{Closed: s.Closed[closed:]}) - c.Limit
	b.exceeded = b.exceeded || o.Over > bound
	b.note(c, r, o.Over, bound, o.Unused)
	return r
}
