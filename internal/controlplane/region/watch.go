package region

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// How often the ledger is looked at: twice a window, within these bounds.
const (
	lookOften  = time.Second
	lookSeldom = 5 * time.Second
	lookTime   = 2 * time.Second // that one look, or one report, may take
)

// watch looks at the ledger until ctx is done, for status, and reports what was counted
// in windows that are over.
func (p *part) watch(ctx context.Context, counts budget.Counts, changed func(types.NamespacedName)) {
	for {
		p.look(ctx, &counts)
		if p.turned() {
			changed(p.name())
		}
		pause := time.NewTimer(pace(p.params().Window))
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// pace returns how long to wait between two looks.
func pace(window limiter.Micros) time.Duration {
	return min(max(time.Duration(window)*time.Microsecond/2, lookOften), lookSeldom)
}

// look reads the ledger, and reports what it does not know yet.
func (p *part) look(ctx context.Context, counts *budget.Counts) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	asked := time.Now()
	state, err := ledgerLine{p.ledger}.Observe(ctx, p.id)
	p.saw(state, err, asked)
	if err != nil {
		return
	}
	if p.values != nil {
		p.reportValues(ctx, &state, counts)
		return
	}
	if news := p.news(&state, counts); len(news) > 0 {
		p.mu.Lock()
		p.sent++
		p.mu.Unlock()
		// A report that does not arrive is seen to be missing at the next look.
		_ = p.engine.Report(ctx, news)
	}
}

// saw notes what came of a look that began at the instant asked.
func (p *part) saw(state ledger.State, err error, asked time.Time) {
	s, now := p.stats(), time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.audit.Leased(budgetaudit.Totals{Leases: s.Commands - p.sent, Units: s.Granted}, now)
	p.seen.err = err
	if err != nil {
		return
	}
	known := map[int64]span{}
	for _, w := range state.Closed {
		when, ok := p.over[w.Index]
		if !ok {
			when = span{before: p.seen.at, after: now}
		}
		known[w.Index] = when
	}
	p.over = known
	p.seen.state, p.seen.at = &state, asked
	if p.values == nil {
		p.audit.Enter(state, readAt(s, p.seen))
	}
}

// news returns what was counted in windows that are over and is not in the ledger.
func (p *part) news(state *ledger.State, counts *budget.Counts) []ledger.Usage {
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	var out []ledger.Usage
	for _, w := range state.Closed[:min(len(state.Closed), ledger.MaxClosed)] {
		open := limiter.OpenWindow{Rate: limiter.Rate{Limit: w.Limit, Window: state.Window}, Index: w.Index}
		counted, known := counts.Usage(p.id, open, over[w.Index].before, over[w.Index].after), reportedOf(&w, p.member)
		says := counted.Complete || !known.Complete && counted.Admitted+counted.Refused > 0
		if says && counted != known {
			out = append(out, counted)
		}
	}
	return out
}

// reportedOf returns what the member reported of a window that is over; of one that it did
// not report nothing is as it is.
func reportedOf(w *ledger.Closed, member string) ledger.Usage {
	for _, u := range w.Usage {
		if u.Member == member && u.Reported {
			return ledger.Usage{Index: w.Index, Admitted: u.Admitted, Refused: u.Refused, Complete: u.Complete}
		}
	}
	return ledger.Usage{Index: -1}
}
