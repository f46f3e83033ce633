package budgetaudit

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestAValueIsMeasuredAgainstItsOwnLimit: Δ and U are of the value that is worst by that.
func TestAValueIsMeasuredAgainstItsOwnLimit(t *testing.T) {
	type rows = map[string]ValueRow
	for name, tc := range map[string]struct {
		rows   rows
		want   Outcome
		wanted []string // of each member
	}{
		"more than others have": {rows{"a": valued(0, of("more", 300, 0)), "b": valued(0, of("more", 200, 0))}, Outcome{Measured: true, Admitted: 500}, nil},
		"more than its own": {
			rows{"a": valued(0, of("more", 300, 0)), "b": valued(0, of("more", 203, 0))}, Outcome{Measured: true, Over: 3, Admitted: 503}, nil,
		},
		"fewer than others have, and more than its own": {
			rows{"a": valued(0, of("fewer", 8, 0)), "b": valued(0, of("fewer", 4, 0))}, Outcome{Measured: true, Over: 2, Admitted: 12}, nil,
		},
		"units that were left": {
			rows{"a": valued(0, of("more", 250, 100)), "b": valued(0, of("more", 200, 0))}, Outcome{Measured: true, Unused: 1000, Admitted: 450, Refused: 100}, nil,
		},
		"none were left": {
			rows{"a": valued(0, of("fewer", 5, 100)), "b": valued(0, of("fewer", 5, 0))}, Outcome{Measured: true, Admitted: 10, Refused: 100}, nil,
		},
		"a value that none names": {
			rows{"a": valued(6), "b": valued(5)}, Outcome{Silent: []string{"a", "b"}, Admitted: 11}, []string{"fewer"},
		},
		"a value that none names, and that cannot have more": {rows{"a": valued(5), "b": valued(5)}, Outcome{Measured: true, Admitted: 10}, nil},
		"a value that was reported": {
			rows{"a": valued(6, of("fewer", 6, 0)), "b": valued(5, of("fewer", 5, 0))}, Outcome{Measured: true, Over: 1, Admitted: 22}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := NewValues(limiter.Second, 0)
			now := limiter.Instant((valueWindowIndex + 2) * budgetSecond)
			v.List([]string{"a", "b"}, now)
			v.Override([]ledger.Override{{Hash: "fewer", Limit: 10}, {Hash: "more", Limit: 500}}, now)
			for m, r := range tc.rows {
				v.Enter(m, r, now)
			}
			tc.want.Index = valueWindowIndex
			if diff := cmp.Diff([]Outcome{tc.want}, v.Outcomes()); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			for _, m := range []string{"a", "b"} {
				var got []string
				for _, w := range v.Wanted(m) {
					got = append(got, w.Hashes...)
				}
				if diff := cmp.Diff(tc.wanted, got); diff != "" {
					t.Errorf("wanted of %s (-want +got):\n%s", m, diff)
				}
			}
		})
	}
}

// TestTheLargestLimitOfAWindowCounts where overrides were edited in it. An edit is heard of between
// two looks, and requests that were under way go on for a while.
func TestTheLargestLimitOfAWindowCounts(t *testing.T) {
	with := func(limit int64) []ledger.Override { return []ledger.Override{{Hash: "x", Limit: limit}} }
	second := func(n float64) limiter.Instant { return limiter.Instant(n * float64(budgetSecond)) }
	type look struct {
		at   float64 // seconds
		held []ledger.Override
	}
	for name, tc := range map[string]struct {
		looks []look
		want  []int64 // limits of x in windows 0, 2, 4 …
	}{
		"nothing is edited": {[]look{{0.5, with(100)}, {20, with(100)}}, []int64{100, 100, 100}},
		"raised":            {[]look{{0.5, with(100)}, {2.5, with(100)}, {4.5, with(200)}}, []int64{100, 200, 200}},
		"lowered":           {[]look{{0.5, with(200)}, {2.5, with(100)}}, []int64{200, 200, 200, 200, 100}},
		"given":             {[]look{{0.5, nil}, {3.5, nil}, {4.5, with(200)}}, []int64{90, 90, 200}},
		"given fewer":       {[]look{{0.5, nil}, {2.5, with(10)}}, []int64{90, 90, 90, 90, 10}},
		"taken away":        {[]look{{0.5, with(200)}, {2.5, nil}}, []int64{200, 200, 200, 200, 90}},
		"taken away, fewer": {[]look{{0.5, with(10)}, {3.5, with(10)}, {4.5, nil}}, []int64{10, 10, 90}},
		"of another":        {[]look{{0.5, []ledger.Override{{Hash: "y", Limit: 1}}}}, []int64{90, 90, 90}},
	} {
		t.Run(name, func(t *testing.T) {
			v := NewValues(limiter.Second, 0)
			for _, l := range tc.looks {
				v.List([]string{"a"}, second(l.at))
				v.Override(l.held, second(l.at))
			}
			for i, limit := range tc.want {
				for over, admitted := range []int64{limit, limit + 1} {
					r := valued(0, of("x", admitted, 0))
					r.Index = int64(2 * i)
					v.Enter("a", r, second(20))
					if o := v.Outcomes()[i]; !o.Measured || o.Over != int64(over) {
						t.Errorf("%d of %d in window %d are %+v", admitted, limit, r.Index, o)
					}
				}
			}
		})
	}
}

// TestEditsThatAreLongOverAreForgotten.
func TestEditsThatAreLongOverAreForgotten(t *testing.T) {
	v := NewValues(limiter.Second, 0)
	for i := range int64(1000) {
		v.Override([]ledger.Override{{Hash: fmt.Sprint(i), Limit: 1}}, limiter.Instant(i*budgetSecond))
	}
	if n := len(v.held); n > maxValueRows+10 {
		t.Errorf("%d versions are remembered", n)
	}
}
