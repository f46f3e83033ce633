package budgetaudit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

const budgetSecond = int64(limiter.Second)

// usage is what a member says of a window it was granted as much of as it admitted.
func usage(member string, admitted, refused int64) ledger.MemberUsage {
	return ledger.MemberUsage{Member: member, Granted: admitted, Admitted: admitted, Refused: refused, Reported: true, Complete: true}
}

// over is a window that is over, with limit 100.
func over(index int64, members ...ledger.MemberUsage) ledger.Closed {
	c := ledger.Closed{Index: index, Limit: 100, Usage: members}
	for _, m := range members {
		c.Granted += m.Granted
	}
	return c
}

// mute is a member that holds units of a window and has said nothing.
func mute(member string, granted int64) ledger.MemberUsage {
	return ledger.MemberUsage{Member: member, Granted: granted}
}

// showing is a ledger whose windows that are over are these, newest first.
func showing(closed ...ledger.Closed) ledger.State {
	s := ledger.State{Window: limiter.Second, Index: 1000, Limit: 100, Closed: closed}
	if len(closed) > 0 {
		s.Index = closed[0].Index + 1
	}
	return s
}

// enter shows ledgers to an audit, each late seconds after the end of its newest
// window.
func (b *Budget) enter(late int64, states ...ledger.State) *Budget {
	for _, s := range states {
		b.Enter(s, limiter.Instant((s.Index+late)*budgetSecond))
	}
	return b
}

func TestBudgetVerdicts(t *testing.T) {
	partial := usage("a", 40, 0)
	partial.Complete = false
	lowered := over(7, usage("a", 60, 0), usage("b", 60, 0))
	before := over(6, usage("a", 60, 0), usage("b", 60, 0))
	before.Limit = 120
	tests := map[string]struct {
		late   int64
		states []ledger.State
		want   audit.Verdict
		silent []string
	}{
		"nothing was shown":             {want: audit.NoTraffic},
		"no window is over":             {states: []ledger.State{showing()}, want: audit.NoTraffic},
		"nobody asked for anything":     {states: []ledger.State{showing(over(7), over(6, usage("a", 0, 0)))}, want: audit.NoTraffic},
		"all reported":                  {states: []ledger.State{showing(over(7, usage("a", 60, 0), usage("b", 40, 9)))}, want: audit.Measured},
		"one has not had the time":      {states: []ledger.State{showing(over(7, usage("a", 60, 0), mute("b", 40)))}, want: audit.Starting},
		"one had the time":              {late: 10, states: []ledger.State{showing(over(7, usage("a", 60, 0), mute("b", 40)))}, want: audit.ReportsMissing, silent: []string{"b"}},
		"one left some out":             {late: 10, states: []ledger.State{showing(over(7, partial))}, want: audit.ReportsMissing, silent: []string{"a"}},
		"one took no part":              {late: 10, states: []ledger.State{showing(over(7, usage("a", 60, 0), mute("b", 0)))}, want: audit.Measured},
		"one refused all":               {states: []ledger.State{showing(over(7, usage("a", 0, 60)))}, want: audit.Measured},
		"an older window was measured":  {states: []ledger.State{showing(over(8, mute("a", 9)), over(7, usage("a", 60, 0)))}, want: audit.Measured},
		"an older one lacks a report":   {late: 9, states: []ledger.State{showing(over(8, usage("a", 9, 0)), over(7, mute("a", 60)))}, want: audit.Measured},
		"the report came late":          {late: 10, states: []ledger.State{showing(over(7, mute("a", 60))), showing(over(7, usage("a", 60, 0)))}, want: audit.Measured},
		"it was forgotten unreported":   {states: []ledger.State{showing(over(7, mute("a", 60))), showing(over(8))}, want: audit.NoTraffic},
		"the newest was forgotten":      {states: []ledger.State{showing(over(7, mute("a", 60))), showing()}, want: audit.ReportsMissing, silent: []string{"a"}},
		"more than the limit":           {states: []ledger.State{showing(over(7, usage("a", 60, 0), usage("b", 41, 0)))}, want: audit.Exceeded},
		"more, and not all is reported": {states: []ledger.State{showing(over(7, ledger.MemberUsage{Member: "a", Admitted: 101}, mute("b", 1)))}, want: audit.Exceeded},
		"more than was granted":         {states: []ledger.State{showing(over(7, ledger.MemberUsage{Member: "a", Granted: 9, Admitted: 99, Reported: true, Complete: true}))}, want: audit.Measured},
		"the limit was lowered":         {states: []ledger.State{showing(lowered, before)}, want: audit.Measured},
		"the limit was lowered, not so": {states: []ledger.State{showing(over(7, usage("a", 90, 0), usage("b", 60, 0)), before)}, want: audit.Exceeded},
		"a window with more passed, as a cluster named a larger limit": {
			states: []ledger.State{showing(lowered), showing(over(8, usage("a", 1, 0)))}, want: audit.Measured,
		},
		"a window passed with more than was granted": {
			states: []ledger.State{
				showing(over(7, ledger.MemberUsage{Member: "a", Granted: 90, Admitted: 101, Reported: true, Complete: true})),
				showing(over(8, usage("a", 1, 0))),
			}, want: audit.Exceeded,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := New(1).enter(tc.late, tc.states...).Figures(time.Time{})
			if f.Verdict != tc.want {
				t.Errorf("verdict %d, want %d", f.Verdict, tc.want)
			}
			if diff := cmp.Diff(tc.silent, f.Silent); diff != "" {
				t.Errorf("silent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBudgetFiguresAreThoseOfTheNewestWindowMeasured(t *testing.T) {
	b := New(1).enter(0,
		showing(over(6, usage("a", 60, 0), usage("b", 45, 10)), over(5, usage("a", 20, 60), usage("b", 0, 0))),
		showing(over(8, mute("a", 9)), over(7, usage("a", 70, 20), usage("b", 20, 0)), over(6, usage("a", 60, 0), usage("b", 45, 10))),
	)
	f := b.Figures(time.Time{})
	second := func(n int64) time.Time { return time.UnixMicro(n * budgetSecond) }
	want := &Overshoot{WindowEnd: second(8), Worst: 5, WorstEnd: second(7)}
	if diff := cmp.Diff(want, f.Overshoot); diff != "" {
		t.Errorf("overshoot (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&audit.UnderUtilization{Observed: 1000, Worst: 6000}, f.UnderUtilization); diff != "" {
		t.Errorf("under-utilization (-want +got):\n%s", diff)
	}
	if f.Window == nil || f.Window.Index != 7 || f.Window.Granted != 90 {
		t.Errorf("the window measured last is %+v, want 7", f.Window)
	}
}

// The worst overshoot is shown with its own bound.
func TestTheWorstOvershootKeepsItsBound(t *testing.T) {
	lowered := over(7, usage("a", 90, 0))
	lowered.Limit = 60
	f := New(1).enter(0, showing(lowered), showing(over(8, usage("a", 1, 0)))).Figures(time.Time{})
	second := func(n int64) time.Time { return time.UnixMicro(n * budgetSecond) }
	want := &Overshoot{WindowEnd: second(9), Worst: 30, WorstEnd: second(8), WorstBound: 30}
	if diff := cmp.Diff(want, f.Overshoot); diff != "" {
		t.Errorf("overshoot (-want +got):\n%s", diff)
	}
}

// The rest of a limit while nobody is refused is not under-utilization.
func TestABudgetThatNobodyWantsIsNotUnused(t *testing.T) {
	f := New(1).enter(0, showing(over(7, usage("a", 20, 0)))).Figures(time.Time{})
	if f.UnderUtilization.Worst != 0 {
		t.Errorf("under-utilization %d of a window without refusals", f.UnderUtilization.Worst)
	}
}

func TestAnotherGenerationBeginsWithLaterWindows(t *testing.T) {
	bad := ledger.MemberUsage{Member: "a", Granted: 90, Admitted: 101, Refused: 1, Reported: true, Complete: true}
	b := New(1).enter(0, showing(over(7, bad)))
	b.Reconfigure(1)
	if f := b.Figures(time.Time{}); f.Verdict != audit.Exceeded || f.Generation != 1 {
		t.Fatalf("the same generation restarted the figures: %+v", f)
	}
	b.Reconfigure(2)
	b.enter(0, showing(over(8, bad), over(7, bad)))
	if f := b.Figures(time.Time{}); f.Verdict != audit.Starting || f.Overshoot != nil || f.Generation != 2 {
		t.Errorf("windows that were open before count: %+v", f)
	}
	b.enter(0, showing(over(9, usage("a", 100, 0))))
	if f := b.Figures(time.Time{}); f.Verdict != audit.Measured || f.Overshoot.Worst != 0 {
		t.Errorf("a window of the new generation does not count: %+v", f)
	}
}

func TestWindowsOfAnotherLengthBeginFromNothing(t *testing.T) {
	b := New(1).enter(0, showing(over(7000, mute("a", 1)), over(6999, usage("a", 30, 0))))
	long := showing(over(116, usage("a", 50, 0)))
	long.Window = 60 * limiter.Second
	b.Enter(long, limiter.Instant(117*60*budgetSecond))
	if f := b.Figures(time.Time{}); f.Verdict != audit.Measured || f.Window.Index != 116 {
		t.Errorf("figures are of windows of the length before: %+v", f)
	}
}

func TestCoordinationOfABudget(t *testing.T) {
	b, at := New(1), time.Unix(1_800_000_000, 0)
	for i := range int64(31) {
		b.Leased(Totals{Leases: 4 * i, Units: 30 * i}, at.Add(time.Duration(i)*time.Second))
	}
	f := b.Figures(at.Add(30 * time.Second))
	if f.LeasesPerSecond < 3.5 || f.LeasesPerSecond > 4.5 || f.UnitsPerLease != 7.5 {
		t.Errorf("%.2f leases a second of %.2f units, want about 4 of 7.5", f.LeasesPerSecond, f.UnitsPerLease)
	}
	if f := New(1).Figures(at); f.LeasesPerSecond != 0 || f.UnitsPerLease != 0 {
		t.Errorf("a region that asked for nothing has %+v", f)
	}
}
