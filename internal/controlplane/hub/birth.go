package hub

import (
	"strings"

	"github.com/weir-dev/weir/pkg/federation/birth"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// An entry says that units of a budget may have been granted, by this hub or to this
// cluster. For a budget that a store keeps it also says by which memories at most.
type entry struct {
	Window limiter.Micros  `json:"window"` // the longest it had
	Seen   limiter.Instant `json:"seen"`   // when it was there last, to refreshBirths
	birth.Birth
}

// late reports whether no window that was open when the budget was there last may still
// be, whatever clocks show.
func (e entry) late(now limiter.Instant) bool {
	return now > e.Seen.Add(e.Window+limiter.Micros((refreshBirths+sweepAfter).Microseconds()))
}

// known is what the ConfigMap holds.
type known struct {
	// Began is when the births were first written down, 0 when nobody had led before: a
	// budget may have been kept before that.
	Began   limiter.Instant  `json:"began,omitempty"`
	Budgets map[string]entry `json:"budgets"` // by id
}

// has reports whether units of a budget may have been granted before, of windows of that
// length that may still be open.
func (k *known) has(id string, window limiter.Micros, now limiter.Instant) bool {
	_, is := k.Budgets[id]
	return is || k.Began > 0 && now < k.Began.Add(window)
}

// A Part is how the cluster takes part in a budget that it does not keep.
type Part struct {
	Window limiter.Micros
	// Ledger is the store that keeps it, "" for the hub of another cluster. Members are the
	// names that the budget lists, ordered.
	Ledger  string
	Members []string
}

// PartOf returns the part in a budget that is kept elsewhere.
func PartOf(b *policy.FederatedBudget) Part {
	p := Part{Window: b.Params.Window, Ledger: LedgerOf(b)}
	if p.Ledger != "" {
		p.Members = b.Params.Names()
	}
	return p
}

// LedgerOf names the store that keeps a budget, by what does not change while it is the
// same one; "" when a hub does.
func LedgerOf(b *policy.FederatedBudget) string {
	of := b.Coordinator
	if b.Hub != nil || of.Type == policy.ControllerStore {
		return ""
	}
	return strings.Join([]string{string(of.Type), of.Address, of.Sentinel, of.Database}, "|")
}

// attend notes how the cluster takes part in budgets now, and drops births that no window
// looks back on.
func (k *known) attend(now limiter.Instant, granted map[string]Part, kept map[string]limiter.Micros) (changed bool) {
	see := func(id string, part Part) {
		was, is := k.Budgets[id]
		next := entry{Window: max(was.Window, part.Window), Birth: was.Follow(part.Ledger, part.Members)}
		if !is && part.Ledger != "" && !k.has(id, part.Window, now) {
			next.Birth = birth.New(part.Ledger, part.Members)
		}
		refresh := now >= was.Seen.Add(limiter.Micros(refreshBirths.Microseconds()))
		if !is || refresh || next.Window != was.Window || !next.Birth.Equal(was.Birth) {
			next.Seen = max(was.Seen, now)
			k.Budgets[id], changed = next, true
		}
	}
	for id, part := range granted {
		see(id, part)
	}
	for id, window := range kept {
		if _, is := k.Budgets[id]; is {
			see(id, Part{Window: window})
		}
	}
	for id, of := range k.Budgets {
		if of.late(now) {
			delete(k.Budgets, id)
			changed = true
		}
	}
	return changed
}
