package region

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// reportValues reports what was counted of values in windows that are over, and takes over what
// is known of them over all members. Where nobody measures them they stay unknown.
func (p *part) reportValues(ctx context.Context, state *ledger.State, counts *budget.Counts) {
	rows := []*budgetaudit.ValueRow{nil}
	units := map[int64]int64{}
	for i := range state.Closed {
		row := p.rowOf(state, i, counts)
		units[row.Index] = row.Admitted + row.Refused
		if !p.isMeasured(row.Index, units[row.Index]) {
			rows = append(rows, &row)
		}
	}
	var answer *budgetaudit.Answer
	for _, row := range rows[min(1, len(rows)-1):] {
		a, err := ledgerLine{p.ledger}.ReportKeys(ctx, p.id, p.member, p.params(), row)
		p.refusedValues(err)
		if _, away := errors.AsType[*store.UnavailableError](err); away {
			break // the next look sends it again
		}
		answer = &a
	}
	if answer != nil {
		p.learn(state, answer, units)
	}
}

// refusedValues notes whether the hub says that it keeps the budget without a key: it answers a
// look all the same.
func (p *part) refusedValues(err error) {
	refused, ok := errors.AsType[*hub.RefusedError](err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen.keyless = nil; ok && refused.Reason == hub.Mismatched {
		p.seen.keyless = err
	}
}

// isMeasured reports whether the window is measured with as many units of this member.
func (p *part) isMeasured(index, units int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	with, ok := p.measured[index]
	return ok && with == units
}

// learn takes over an answer to rows with these units, by window.
func (p *part) learn(state *ledger.State, answer *budgetaudit.Answer, units map[int64]int64) {
	s := p.stats()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range answer.Wanted {
		if _, closed := units[w.Index]; closed {
			p.wanted[w.Index] = merged(p.wanted[w.Index], w.Hashes)
		}
	}
	clear(p.measured)
	for _, o := range answer.Outcomes {
		if n, closed := units[o.Index]; closed && o.Measured {
			p.measured[o.Index] = n
		}
	}
	maps.DeleteFunc(p.wanted, func(index int64, _ []string) bool { _, closed := units[index]; return !closed })
	p.audit.EnterValues(*state, answer.Outcomes, readAt(s, p.seen))
}

// merged returns the hashes of both, ascending.
func merged(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// rowOf returns what this cluster counted in a window that is over.
func (p *part) rowOf(state *ledger.State, closed int, counts *budget.Counts) budgetaudit.ValueRow {
	w := &state.Closed[closed]
	p.mu.Lock()
	over, wanted := p.over[w.Index], p.wanted[w.Index]
	p.mu.Unlock()
	open := limiter.OpenWindow{Rate: limiter.Rate{Limit: w.Limit, Window: state.Window}, Index: w.Index}
	return rowFrom(w, counts.Values(p.id, open, over.before, over.after, wanted), wanted)
}

// rowFrom returns the row that says so. The values that are wanted go before those that more was
// admitted of, when there are too many.
func rowFrom(w *ledger.Closed, u audit.ValueUsage, wanted []string) budgetaudit.ValueRow {
	row := budgetaudit.ValueRow{
		Index: w.Index, Limit: w.Limit, Admitted: u.Admitted, Refused: u.Refused, Hidden: u.Hidden, Complete: u.Complete,
	}
	for _, hash := range wanted {
		k, exact := u.Keys[hash]
		if exact || u.Hidden == 0 {
			k.Hash = hash
			row.Keys = append(row.Keys, k)
		}
	}
	rest := slices.Collect(maps.Values(u.Keys))
	rest = slices.DeleteFunc(rest, func(k audit.KeyCount) bool {
		_, named := slices.BinarySearch(wanted, k.Hash)
		return named
	})
	slices.SortFunc(rest, func(a, b audit.KeyCount) int {
		return cmp.Or(cmp.Compare(b.Admitted, a.Admitted), cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Hash, b.Hash))
	})
	if room := max(0, budgetaudit.MaxRowKeys-len(row.Keys)); len(rest) > room {
		row.Hidden = max(row.Hidden, rest[room].Admitted)
		rest = rest[:room]
	}
	row.Keys = append(row.Keys, rest...)
	slices.SortFunc(row.Keys, func(a, b audit.KeyCount) int { return cmp.Compare(a.Hash, b.Hash) })
	return row
}
