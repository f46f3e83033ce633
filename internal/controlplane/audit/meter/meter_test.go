package meter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// steady adds c every second, and returns the averages at the end.
func steady(m *Meter, c Counts, seconds int) Flow {
	for i := range seconds {
		m.Add(c, noon.Add(time.Duration(i)*time.Second))
	}
	return m.Flow(noon.Add(time.Duration(seconds) * time.Second))
}

func TestFlow(t *testing.T) {
	each := Counts{Admitted: 90, Refused: 10, RoundTrips: 4}
	want := Flow{AdmittedPerSecond: 90, RejectedPerSecond: 10, RequestsPerRoundTrip: 25}
	tests := map[string]struct {
		covered time.Duration
		seconds int
	}{
		"in the first span":                 {seconds: 5},
		"in the second span":                {seconds: 15},
		"when spans were dropped":           {seconds: 45},
		"over a window longer than a span":  {covered: 30 * time.Second, seconds: 100},
		"over a window longer than a meter": {covered: time.Hour, seconds: 300},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var m Meter
			m.Cover(tc.covered)
			if diff := cmp.Diff(want, steady(&m, each, tc.seconds), cmpopts.EquateApprox(0.1, 0)); diff != "" {
				t.Errorf("flow (-want +got):\n%s", diff)
			}
		})
	}
	if got := new(Meter).Flow(noon); got != (Flow{}) {
		t.Errorf("flow of nothing = %+v, want zero", got)
	}
}

// A burst is averaged over at most two spans.
func TestFiguresOlderThanTwoSpansAreDropped(t *testing.T) {
	tests := map[string]struct {
		covered, after time.Duration
		want           int64
	}{
		"within the span before": {after: 19 * time.Second, want: 100},
		"after two spans":        {after: 21 * time.Second},
		"of a longer window":     {covered: 30 * time.Second, after: 59 * time.Second, want: 100},
		"after two longer spans": {covered: 30 * time.Second, after: 61 * time.Second},
		"of the longest window":  {covered: time.Hour, after: 119 * time.Second, want: 100},
		"after the longest span": {covered: time.Hour, after: 121 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var m Meter
			m.Cover(tc.covered)
			m.Add(Counts{Admitted: 100}, noon)
			for at := time.Second; at < tc.after; at += time.Second {
				m.Add(Counts{}, noon.Add(at))
			}
			if got, _ := m.Recent(noon.Add(tc.after)); got.Admitted != tc.want {
				t.Errorf("after %v: %d are averaged, want %d", tc.after, got.Admitted, tc.want)
			}
		})
	}
}

func TestACountThatFellCountsAsNothing(t *testing.T) {
	got := Counts{Admitted: 3, Refused: 9, RoundTrips: 1}.Since(Counts{Admitted: 5, Refused: 2, RoundTrips: 1})
	if want := (Counts{Refused: 7}); got != want {
		t.Errorf("since = %+v, want %+v", got, want)
	}
}
