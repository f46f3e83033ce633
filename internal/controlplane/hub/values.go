package hub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/internal/federationpb"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Audits measure the values of the budgets with a key that this hub keeps, in memory: windows
// that were open when it was lost stay unknown. They are safe for concurrent use.
type Audits struct {
	clock func() limiter.Instant

	mu   sync.Mutex
	byID map[string]*audited
}

// An audited budget was asked for at an instant last.
type audited struct {
	*budgetaudit.Values
	asked limiter.Instant
}

// unasked is for how long a budget is remembered that no member asks for, although each looks every
// few seconds: the object was deleted, or its id is another.
const unasked = 3600 * limiter.Second

// NewAudits returns audits of nothing yet.
func NewAudits() *Audits {
	return &Audits{
		clock: func() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) },
		byID:  map[string]*audited{},
	}
}

// Reset forgets everything: meanwhile another hub may have been asked.
func (a *Audits) Reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.byID)
}

// ReportKeys enters what a member counted in a window that is over, when row is not nil, and
// returns what is known of the budget, whose parameters are p. The error is nil.
func (a *Audits) ReportKeys(_ context.Context, id, member string, p ledger.Params, row *budgetaudit.ValueRow) (budgetaudit.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock()
	v := a.byID[id]
	if v == nil || v.Window() != p.Window {
		maps.DeleteFunc(a.byID, func(_ string, v *audited) bool { return now.Sub(v.asked) > unasked })
		v = &audited{Values: budgetaudit.NewValues(p.Window, now)}
		a.byID[id] = v
	}
	v.asked = now
	v.List(p.Names(), now)
	v.Override(p.Overrides, now)
	if row != nil {
		v.Enter(member, *row, now)
	}
	return budgetaudit.Answer{Wanted: v.Wanted(member), Outcomes: v.Outcomes()}, nil
}

// ReportKeys implements federationpb.FederationServer.
func (s *service) ReportKeys(ctx context.Context, in *federationpb.ReportKeysRequest) (*federationpb.ReportKeysResponse, error) {
	p, err := s.budget(ctx, in.GetBudget())
	if err != nil {
		return nil, err
	}
	if err := matches(p, in, true); err != nil {
		return nil, err
	}
	row, err := rowFrom(in.GetRow())
	if err != nil {
		return nil, refuse(codes.InvalidArgument, federationpb.Refusal_REASON_INVALID, "the report is not one that a member sends: %v", err)
	}
	if s.Audits == nil {
		return nil, refuse(codes.Unimplemented, federationpb.Refusal_REASON_INVALID, "this hub does not measure values")
	}
	answer, err := s.Audits.ReportKeys(ctx, in.GetBudget(), memberOf(ctx), p, row)
	return answerTo(answer), err
}

// ReportKeys sends what this member counted in a window that is over, nothing when row is nil, and
// returns what the hub knows. The certificate says which member it is. The error is that of
// Apply.
func (c *Client) ReportKeys(ctx context.Context, id, _ string, p ledger.Params, row *budgetaudit.ValueRow) (budgetaudit.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	in, err := c.calls.ReportKeys(ctx, &federationpb.ReportKeysRequest{
		Budget: id, WindowMicros: int64(p.Window), OtherWindowsMicros: microsTo(p.Others), Row: rowTo(row),
	})
	if err != nil {
		return budgetaudit.Answer{}, c.typed(err)
	}
	answer, err := answerFrom(in)
	if err != nil {
		return budgetaudit.Answer{}, c.misunderstood(err)
	}
	return answer, nil
}

func rowTo(r *budgetaudit.ValueRow) *federationpb.KeyRow {
	if r == nil {
		return nil
	}
	out := &federationpb.KeyRow{
		Index: r.Index, Limit: r.Limit, Admitted: r.Admitted, Refused: r.Refused, Hidden: r.Hidden, Complete: r.Complete,
	}
	for _, k := range r.Keys {
		out.Keys = append(out.Keys, &federationpb.KeyCount{Hash: k.Hash, Admitted: k.Admitted, Refused: k.Refused})
	}
	return out
}

// rowFrom reads a row that a member may send, nil for none.
func rowFrom(in *federationpb.KeyRow) (*budgetaudit.ValueRow, error) {
	if in == nil {
		return nil, nil
	}
	r := &budgetaudit.ValueRow{
		Index: in.GetIndex(), Limit: in.GetLimit(), Admitted: in.GetAdmitted(), Refused: in.GetRefused(),
		Hidden: in.GetHidden(), Complete: in.GetComplete(),
	}
	if n := len(in.GetKeys()); n > budgetaudit.MaxRowKeys {
		return nil, fmt.Errorf("%d values, at most %d are taken", n, budgetaudit.MaxRowKeys)
	}
	err := counts(r.Index, r.Limit, r.Admitted, r.Refused, r.Hidden)
	for i, k := range in.GetKeys() {
		if i > 0 && k.GetHash() <= r.Keys[i-1].Hash || len(k.GetHash()) > maxName {
			return nil, fmt.Errorf("values out of order at %d", i)
		}
		err = errors.Join(err, counts(k.GetAdmitted(), k.GetRefused()))
		r.Keys = append(r.Keys, audit.KeyCount{Hash: k.GetHash(), Admitted: k.GetAdmitted(), Refused: k.GetRefused()})
	}
	return r, err
}

func answerTo(a budgetaudit.Answer) *federationpb.ReportKeysResponse {
	out := &federationpb.ReportKeysResponse{}
	for _, w := range a.Wanted {
		out.Wanted = append(out.Wanted, &federationpb.WantedKeys{Index: w.Index, Hashes: w.Hashes})
	}
	for _, o := range a.Outcomes {
		out.Outcomes = append(out.Outcomes, &federationpb.KeyOutcome{
			Index: o.Index, Measured: o.Measured, Silent: o.Silent, Over: o.Over, Unused: o.Unused,
			Admitted: o.Admitted, Refused: o.Refused,
		})
	}
	return out
}

// answerFrom reads an answer. Numbers that nobody counts to are an error.
func answerFrom(in *federationpb.ReportKeysResponse) (budgetaudit.Answer, error) {
	var a budgetaudit.Answer
	var errs []error
	for _, w := range in.GetWanted() {
		if n := len(w.GetHashes()); n > budgetaudit.MaxWanted {
			errs = append(errs, fmt.Errorf("%d values are wanted, at most %d are asked for", n, budgetaudit.MaxWanted))
		}
		errs = append(errs, counts(w.GetIndex()))
		a.Wanted = append(a.Wanted, budgetaudit.Wanted{Index: w.GetIndex(), Hashes: w.GetHashes()})
	}
	for _, o := range in.GetOutcomes() {
		errs = append(errs, counts(o.GetIndex(), o.GetOver(), int64(o.GetUnused()), o.GetAdmitted(), o.GetRefused()))
		a.Outcomes = append(a.Outcomes, budgetaudit.Outcome{
			Index: o.GetIndex(), Measured: o.GetMeasured(), Silent: o.GetSilent(), Over: o.GetOver(), Unused: o.GetUnused(),
			Admitted: o.GetAdmitted(), Refused: o.GetRefused(),
		})
	}
	return a, errors.Join(errs...)
}
