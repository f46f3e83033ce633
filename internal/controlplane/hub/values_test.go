package hub

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/internal/federationpb"
	"github.com/weir-dev/weir/internal/testing/fieldtest"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestMembersMeasureValuesOverTheWire has two report over real connections: one is asked for a
// value that the other named.
func TestMembersMeasureValuesOverTheWire(t *testing.T) {
	w := newWorld(t)
	now := limiter.Instant(0)
	audits := NewAudits()
	audits.clock = func() limiter.Instant { return now }
	w.audits = audits
	w.start(t)
	p := w.values()
	p.Members = p.Members[1:]
	w.budgets.set(budgetID, p)
	b, c := w.open(t, w.secret(t, "b")), w.open(t, w.secret(t, "c"))
	report := func(from *Client, row *budgetaudit.ValueRow) budgetaudit.Answer {
		t.Helper()
		a, err := from.ReportKeys(t.Context(), budgetID, "another", p, row) // the certificate counts
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	report(b, nil) // the audit begins
	now = 5 * limiter.Instant(limiter.Second)
	row := func(hidden int64, keys ...audit.KeyCount) *budgetaudit.ValueRow {
		r := &budgetaudit.ValueRow{Index: 3, Limit: 100, Hidden: hidden, Keys: keys, Complete: true, Admitted: hidden}
		for _, k := range keys {
			r.Admitted += k.Admitted
		}
		return r
	}
	report(b, row(1, audit.KeyCount{Hash: "x", Admitted: 80}))
	a := report(c, row(40))
	if diff := cmp.Diff([]budgetaudit.Wanted{{Index: 3, Hashes: []string{"x"}}}, a.Wanted); diff != "" {
		t.Errorf("wanted (-want +got)\n%s", diff)
	}
	report(c, row(20, audit.KeyCount{Hash: "x", Admitted: 23}))
	want := []budgetaudit.Outcome{{Index: 3, Measured: true, Over: 3, Admitted: 124}}
	if diff := cmp.Diff(want, report(b, nil).Outcomes); diff != "" {
		t.Errorf("outcome (-want +got)\n%s", diff)
	}
	audits.Reset()
	if a := report(b, nil); len(a.Outcomes) != 0 {
		t.Errorf("%+v is known after another hub may have been asked", a)
	}
}

// TestAuditsThatNobodyAsksForAreForgotten when another budget is audited.
func TestAuditsThatNobodyAsksForAreForgotten(t *testing.T) {
	a, now := NewAudits(), limiter.Instant(0)
	a.clock = func() limiter.Instant { return now }
	report := func(id string) {
		_, _ = a.ReportKeys(t.Context(), id, "a", ledger.Params{Window: limiter.Second, Limit: 1}, nil)
	}
	for hour := range 5 {
		for minute := range 60 {
			now = limiter.Instant(60*hour+minute) * 60 * limiter.Instant(limiter.Second)
			report("stays")
			report(fmt.Sprintf("one/%d", hour))
		}
	}
	if _, stays := a.byID["stays"]; !stays || len(a.byID) != 3 {
		t.Errorf("%d budgets are remembered, want those of the last hour and of the one before", len(a.byID))
	}
}

// TestReportsThatNoMemberSends are refused.
func TestReportsThatNoMemberSends(t *testing.T) {
	key := func(hash string, n int64) *federationpb.KeyCount {
		return &federationpb.KeyCount{Hash: hash, Admitted: n}
	}
	many := &federationpb.KeyRow{}
	for i := range budgetaudit.MaxRowKeys + 1 {
		many.Keys = append(many.Keys, key(fmt.Sprintf("%09d", i), 1))
	}
	for name, row := range map[string]*federationpb.KeyRow{
		"a value twice":     {Keys: []*federationpb.KeyCount{key("x", 1), key("x", 1)}},
		"values not sorted": {Keys: []*federationpb.KeyCount{key("y", 1), key("x", 1)}},
		"a negative count":  {Keys: []*federationpb.KeyCount{key("x", -1)}},
		"negative units":    {Hidden: -1},
		"too many values":   many,
	} {
		if _, err := rowFrom(row); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}

func TestEveryFieldOfAValueReportIsSent(t *testing.T) {
	row := &budgetaudit.ValueRow{
		Index: 1, Limit: 2, Admitted: 3, Refused: 4, Hidden: 5, Complete: true, Keys: []audit.KeyCount{{Hash: "x", Admitted: 6, Refused: 7}},
	}
	fieldtest.Matter(t, []*budgetaudit.ValueRow{row}, func(r *budgetaudit.ValueRow) (any, error) { return rowFrom(rowTo(r)) })
	answer := &budgetaudit.Answer{
		Wanted: []budgetaudit.Wanted{{Index: 1, Hashes: []string{"x"}}},
		Outcomes: []budgetaudit.Outcome{{
			Index: 1, Measured: true, Silent: []string{"b"}, Over: 2, Unused: 3, Admitted: 4, Refused: 5,
		}},
	}
	fieldtest.Matter(t, []*budgetaudit.Answer{answer}, func(a *budgetaudit.Answer) (any, error) { return answerFrom(answerTo(*a)) })
}

// TestAWindowOfAnotherLengthBeginsTheAuditAgain since its numbers are others.
func TestAWindowOfAnotherLengthBeginsTheAuditAgain(t *testing.T) {
	a := NewAudits()
	a.clock = func() limiter.Instant { return limiter.Instant(10 * limiter.Second) }
	p := params(100, "a")
	p.Keys = 1
	report := func() int {
		answer, err := a.ReportKeys(t.Context(), "x", "a", p, &budgetaudit.ValueRow{Index: 12, Limit: 100, Complete: true})
		if err != nil {
			t.Fatal(err)
		}
		return len(answer.Outcomes)
	}
	report()
	a.clock = func() limiter.Instant { return limiter.Instant(30 * limiter.Second) }
	if report() != 1 {
		t.Fatal("a window that is over is not known")
	}
	if p.Window = limiter.Micros(2 * time.Second / time.Microsecond); report() != 0 {
		t.Error("a window of the length before is known")
	}
}
