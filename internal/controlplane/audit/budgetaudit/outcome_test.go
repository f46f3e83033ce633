package budgetaudit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestVerdictsOfABudgetWithAKey(t *testing.T) {
	known := func(index, over int64) Outcome {
		return Outcome{Index: index, Measured: true, Over: over, Admitted: 900}
	}
	lowered, before := over(7, usage("a", 0, 0)), over(6, usage("a", 0, 0))
	before.Limit = 120
	raised := over(7, usage("a", 0, 0))
	raised.Limit = 120
	tests := map[string]struct {
		late     int64
		closed   []ledger.Closed
		outcomes []Outcome
		want     audit.Verdict
		silent   []string
		worst    int64
	}{
		"no window is over":             {want: audit.NoTraffic},
		"nobody asked for anything":     {closed: []ledger.Closed{over(7)}, outcomes: []Outcome{{Index: 7, Measured: true}}, want: audit.NoTraffic},
		"much of all values":            {closed: []ledger.Closed{over(7)}, outcomes: []Outcome{known(7, 0)}, want: audit.Measured},
		"too much of one":               {closed: []ledger.Closed{over(7)}, outcomes: []Outcome{known(7, 1)}, want: audit.Exceeded, worst: 1},
		"too much, and one is silent":   {closed: []ledger.Closed{over(7)}, outcomes: []Outcome{{Index: 7, Over: 2, Silent: []string{"b"}}}, want: audit.Exceeded, worst: 2},
		"one has not had the time":      {closed: []ledger.Closed{over(7)}, outcomes: []Outcome{{Index: 7, Admitted: 1, Silent: []string{"b"}}}, want: audit.Starting},
		"one had the time":              {late: 10, closed: []ledger.Closed{over(7)}, outcomes: []Outcome{{Index: 7, Admitted: 1, Silent: []string{"b"}}}, want: audit.ReportsMissing, silent: []string{"b"}},
		"nothing is known of it":        {late: 10, closed: []ledger.Closed{over(7, mute("a", 0), mute("b", 0))}, want: audit.ReportsMissing, silent: []string{"a", "b"}},
		"the limit was lowered":         {closed: []ledger.Closed{lowered, before}, outcomes: []Outcome{known(7, 20), known(6, 0)}, want: audit.Measured, worst: 20},
		"the limit was lowered, not so": {closed: []ledger.Closed{lowered, before}, outcomes: []Outcome{known(7, 21), known(6, 0)}, want: audit.Exceeded, worst: 21},
		"the limit was raised":          {closed: []ledger.Closed{raised, over(6)}, outcomes: []Outcome{known(6, 1)}, want: audit.Exceeded, worst: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := showing(tc.closed...)
			b := New(1)
			b.EnterValues(s, tc.outcomes, limiter.Instant((s.Index+tc.late)*budgetSecond))
			f := b.Figures(time.Time{})
			if f.Verdict != tc.want {
				t.Errorf("verdict %d, want %d", f.Verdict, tc.want)
			}
			if diff := cmp.Diff(tc.silent, f.Silent); diff != "" {
				t.Errorf("silent (-want +got):\n%s", diff)
			}
			if f.Overshoot != nil && f.Overshoot.Worst != tc.worst || f.Overshoot == nil && tc.worst > 0 {
				t.Errorf("overshoot %+v, want a worst of %d", f.Overshoot, tc.worst)
			}
		})
	}
}

func TestTheUnusedOfAValueIsShown(t *testing.T) {
	b := New(1)
	b.EnterValues(showing(over(7)), []Outcome{{Index: 7, Measured: true, Unused: 250, Refused: 1}}, limiter.Instant(8*budgetSecond))
	if f := b.Figures(time.Time{}); f.UnderUtilization == nil || f.UnderUtilization.Worst != 250 || f.UnderUtilization.Observed != 250 {
		t.Errorf("%+v", f.UnderUtilization)
	}
}
