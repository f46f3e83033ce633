package audit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/internal/audit/meter"
)

func TestFlowOfALimit(t *testing.T) {
	f := newFleet(false, 100, "a")
	for i := range int64(31) {
		f.Report(holder("a"), Report{Totals: Totals{Admitted: 90 * i, Refused: 10 * i, RoundTrips: 4 * i}, ActiveKeys: 3}, f.now)
		f.now = f.now.Add(time.Second)
	}
	got := f.Figures(f.now)
	want := meter.Flow{AdmittedPerSecond: 90, RejectedPerSecond: 10, RequestsPerRoundTrip: 25}
	if diff := cmp.Diff(want, got.Flow, cmpopts.EquateApprox(0.1, 0)); diff != "" {
		t.Errorf("flow (-want +got):\n%s", diff)
	}
	if got.ActiveKeys != 3 {
		t.Errorf("active keys = %d, want 3", got.ActiveKeys)
	}
}
