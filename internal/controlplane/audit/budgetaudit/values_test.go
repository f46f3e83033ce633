package budgetaudit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/pkg/limiter"
)

const valueWindowIndex = 7

// valued is a complete row of a window with limit 90 that names these counts of admitted units.
func valued(hidden int64, counts ...audit.KeyCount) ValueRow {
	r := ValueRow{Index: valueWindowIndex, Limit: 90, Keys: counts, Hidden: hidden, Complete: true, Admitted: hidden}
	for _, c := range counts {
		r.Admitted, r.Refused = r.Admitted+c.Admitted, r.Refused+c.Refused
	}
	return r
}

func of(hash string, admitted, refused int64) audit.KeyCount {
	return audit.KeyCount{Hash: hash, Admitted: admitted, Refused: refused}
}

func partly(r ValueRow) ValueRow { r.Complete = false; return r }

func TestOutcomeOfValues(t *testing.T) {
	type rows = map[string]ValueRow
	tests := map[string]struct {
		rows   rows
		want   Outcome
		wanted map[string][]string // of members that have to report more
	}{
		"nobody counted anything": {rows: rows{"a": valued(0), "b": valued(0), "c": valued(0)}, want: Outcome{Measured: true}},
		"no value can be beyond the limit": {
			rows: rows{"a": valued(30), "b": valued(30), "c": valued(30, of("x", 30, 0))},
			want: Outcome{Measured: true, Admitted: 120},
		},
		"one member reported nothing": {
			rows: rows{"a": valued(0), "b": valued(0)}, want: Outcome{Silent: []string{"c"}},
		},
		"one member does not know all, and all is beyond the limit": {
			rows: rows{"a": valued(0, of("x", 60, 0)), "b": valued(0, of("x", 40, 0)), "c": partly(valued(0))},
			want: Outcome{Silent: []string{"c"}, Over: 10, Admitted: 100},
		},
		"two have to report a value": {
			rows:   rows{"a": valued(9, of("x", 60, 0)), "b": valued(20), "c": valued(30)},
			want:   Outcome{Silent: []string{"b", "c"}, Admitted: 119},
			wanted: map[string][]string{"b": {"x"}, "c": {"x"}},
		},
		"both did, and it is within": {
			rows: rows{"a": valued(9, of("x", 60, 0)), "b": valued(20, of("x", 0, 0)), "c": valued(30, of("x", 30, 0))},
			want: Outcome{Measured: true, Admitted: 149},
		},
		"both did, and it is beyond": {
			rows: rows{"a": valued(9, of("x", 60, 0)), "b": valued(20, of("x", 20, 0)), "c": valued(30, of("x", 14, 0))},
			want: Outcome{Measured: true, Over: 4, Admitted: 153},
		},
		"the values that no row names may be beyond": {
			rows: rows{"a": valued(31), "b": valued(30), "c": valued(30)},
			want: Outcome{Silent: []string{"a"}, Admitted: 91},
		},
		"a value was refused that others did not name": {
			rows:   rows{"a": valued(0, of("x", 30, 5)), "b": valued(10), "c": valued(0)},
			want:   Outcome{Silent: []string{"b", "c"}, Admitted: 40, Refused: 5},
			wanted: map[string][]string{"b": {"x"}, "c": {"x"}},
		},
		"a value was refused although units were left": {
			rows: rows{"a": valued(0, of("x", 30, 30)), "b": valued(10, of("x", 15, 0)), "c": valued(0, of("x", 0, 0))},
			want: Outcome{Measured: true, Unused: 3333, Admitted: 55, Refused: 30},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v := NewValues(limiter.Second, 0)
			now := limiter.Instant((valueWindowIndex + 2) * budgetSecond)
			v.List([]string{"a", "b", "c"}, now)
			for m, r := range tc.rows {
				v.Enter(m, r, now)
			}
			tc.want.Index = valueWindowIndex
			if diff := cmp.Diff([]Outcome{tc.want}, v.Outcomes()); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			for _, m := range []string{"a", "b", "c"} {
				var got []string
				for _, w := range v.Wanted(m) {
					got = append(got, w.Hashes...)
				}
				if diff := cmp.Diff(tc.wanted[m], got); diff != "" {
					t.Errorf("wanted of %s (-want +got):\n%s", m, diff)
				}
			}
		})
	}
}

func TestValuesThatDoNotFitLeaveTheWindowUnknown(t *testing.T) {
	v := NewValues(limiter.Second, 0)
	now := limiter.Instant((valueWindowIndex + 2) * budgetSecond)
	v.List([]string{"a", "b"}, now)
	for _, m := range []string{"a", "b"} {
		r := valued(45)
		for i := range MaxWanted {
			r.Keys = append(r.Keys, of(fmt.Sprint(m, i), 50, 0))
		}
		v.Enter(m, r, now)
	}
	if o := v.Outcomes()[0]; o.Measured || len(o.Silent) != 2 {
		t.Errorf("%+v is measured although more values may be beyond the limit than are asked for", o)
	}
}

func TestRowsThatDoNotCount(t *testing.T) {
	more, less := valued(0, of("x", 95, 0)), valued(0, of("x", 20, 0))
	now := limiter.Instant((valueWindowIndex + 2) * budgetSecond)
	tests := map[string]struct {
		began limiter.Instant // the audit
		at    limiter.Instant // when rows come
		rows  []ValueRow
		over  int64 // -1: no window is known
		known bool
	}{
		"another with fewer units":          {at: now, rows: []ValueRow{more, less}, over: 5, known: true},
		"one with more":                     {at: now, rows: []ValueRow{less, more}, over: 5, known: true},
		"one that is incomplete with more":  {at: now, rows: []ValueRow{less, partly(more)}, over: 5},
		"one that is incomplete again":      {at: now, rows: []ValueRow{more, partly(more)}, over: 5, known: true},
		"of a window before the audit":      {began: limiter.Instant(valueWindowIndex*budgetSecond + 1), at: now, rows: []ValueRow{more}, over: -1},
		"of the first window of the audit":  {began: limiter.Instant(valueWindowIndex * budgetSecond), at: now, rows: []ValueRow{more}, over: 5, known: true},
		"of a window that is open":          {at: limiter.Instant((valueWindowIndex+1)*budgetSecond - 1), rows: []ValueRow{more}, over: -1},
		"of a window that is over just now": {at: limiter.Instant((valueWindowIndex + 1) * budgetSecond), rows: []ValueRow{more}, over: 5, known: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v := NewValues(limiter.Second, tc.began)
			v.List([]string{"a"}, tc.at)
			for _, r := range tc.rows {
				v.Enter("a", r, tc.at)
			}
			got, known := int64(-1), false
			for _, o := range v.Outcomes() {
				got, known = o.Over, o.Measured
			}
			if got != tc.over || known != tc.known {
				t.Errorf("%d units beyond, known: %t; want %d, %t", got, known, tc.over, tc.known)
			}
		})
	}
}

func TestAMemberThatWasListedWhileTheWindowWasOpenIsWaitedFor(t *testing.T) {
	open := limiter.Instant(valueWindowIndex*budgetSecond + 1)
	over := limiter.Instant((valueWindowIndex + 1) * budgetSecond)
	for name, tc := range map[string]struct {
		at   limiter.Instant // when b was listed last
		want []string
	}{
		"in it":     {at: open, want: []string{"b"}},
		"before it": {at: open - 2},
	} {
		t.Run(name, func(t *testing.T) {
			v := NewValues(limiter.Second, 0)
			v.List([]string{"a", "b"}, tc.at)
			v.List([]string{"a"}, over)
			v.Enter("a", valued(0), over)
			if diff := cmp.Diff(tc.want, v.Outcomes()[0].Silent); diff != "" {
				t.Errorf("silent (-want +got):\n%s", diff)
			}
		})
	}
}

// A valueWorld is what members really admitted of each value in each window, and messages that
// get lost, come twice or late.
type valueWorld struct {
	rng     *rand.Rand
	values  *Values
	members []string
	limit   int64
	truth   map[int64]map[string]map[string]int64 // by window, member and value
	asked   map[string]map[int64][]string         // by member: what it was asked for
	dead    map[string]bool                       // it does not know all of its windows any more
	late    []func()
	loss    int // out of 10 messages
}

// rowOf is what the member counted, as a region reports it: the values beyond its part and those
// it was asked for.
func (w *valueWorld) rowOf(member string, index int64) ValueRow {
	r := ValueRow{Index: index, Limit: w.limit, Complete: !w.dead[member]}
	counts := w.truth[index][member]
	asked := w.asked[member][index]
	named := map[string]bool{}
	for hash, n := range counts {
		r.Admitted += n
		if n > w.limit/int64(len(w.members)) || slices.Contains(asked, hash) {
			named[hash] = true
			r.Keys = append(r.Keys, of(hash, n, 0))
		} else {
			r.Hidden = max(r.Hidden, n)
		}
	}
	for _, hash := range asked {
		if !named[hash] {
			r.Keys = append(r.Keys, of(hash, 0, 0))
			named[hash] = true
		}
	}
	return r
}

// turn has every member report every window, and take up what is wanted of it.
func (w *valueWorld) turn(now limiter.Instant) {
	w.values.List(w.members, now)
	for _, m := range w.members {
		for index := range w.truth {
			row := w.rowOf(m, index)
			enter := func() { w.values.Enter(m, row, now) }
			switch w.rng.IntN(10) {
			default:
				enter()
			case 0:
				w.late = append(w.late, enter)
				enter()
			case 1:
				w.late = append(w.late, enter)
			case 2:
				if w.loss == 0 {
					enter()
				}
			}
		}
		if w.rng.IntN(10) < w.loss {
			continue // the answer is lost
		}
		for _, q := range w.values.Wanted(m) {
			w.asked[m][q.Index] = append(w.asked[m][q.Index], q.Hashes...)
		}
	}
	for _, enter := range w.late {
		if w.rng.IntN(2) == 0 {
			enter()
		}
	}
}

// over returns Δ as it really was.
func (w *valueWorld) over(index int64) (over int64) {
	sums := map[string]int64{}
	for _, counts := range w.truth[index] {
		for hash, n := range counts {
			sums[hash] += n
			over = max(over, sums[hash]-w.limit)
		}
	}
	return over
}

// admit has members admit units of values by a grant that keeps to the limit of each, or, when it
// is weak, now and then to a little more.
func (w *valueWorld) admit(index int64, weak bool) {
	w.truth[index] = map[string]map[string]int64{}
	for _, m := range w.members {
		w.truth[index][m] = map[string]int64{}
	}
	for i := range 12 {
		left := w.limit
		if weak && w.rng.IntN(8) == 0 {
			left += 1 + w.rng.Int64N(3)
		}
		for left > 0 && w.rng.IntN(12) > 0 {
			n := 1 + w.rng.Int64N(left)
			w.truth[index][w.members[w.rng.IntN(len(w.members))]][fmt.Sprint("v", i)] += n
			left -= n
		}
	}
}

// TestWhatIsMeasuredOfValuesIsTrue sets outcomes beside the truth: with messages lost, repeated
// and late, with members that lose their counts, and with grants that are too large.
func TestWhatIsMeasuredOfValuesIsTrue(t *testing.T) {
	var measured, unknown, found int
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := &valueWorld{
			rng: rng, values: NewValues(limiter.Second, 0), limit: 1 + rng.Int64N(40), loss: rng.IntN(4),
			truth: map[int64]map[string]map[string]int64{}, asked: map[string]map[int64][]string{}, dead: map[string]bool{},
		}
		for i := range 2 + rng.IntN(4) {
			m := fmt.Sprint("m", i)
			w.members = append(w.members, m)
			w.asked[m] = map[int64][]string{}
			w.dead[m] = rng.IntN(15) == 0
		}
		weak := seed%2 == 0
		for index := range int64(4) {
			w.admit(1+index, weak)
		}
		for range 12 {
			w.turn(limiter.Instant(9 * budgetSecond))
			for _, o := range w.values.Outcomes() {
				real := w.over(o.Index)
				switch {
				case o.Measured && o.Over != real:
					t.Fatalf("seed %d: Δ %d of window %d is measured, it is %d", seed, o.Over, o.Index, real)
				case o.Over > real:
					t.Fatalf("seed %d: Δ is at least %d of window %d, it is %d", seed, o.Over, o.Index, real)
				case o.Measured && slices.ContainsFunc(w.members, func(m string) bool { return w.dead[m] }):
					t.Fatalf("seed %d: window %d is measured without all counts", seed, o.Index)
				}
			}
		}
		for _, o := range w.values.Outcomes() {
			if o.Measured {
				measured++
				found += min(1, int(o.Over))
				continue
			}
			if w.loss == 0 && !slices.ContainsFunc(w.members, func(m string) bool { return w.dead[m] }) {
				t.Fatalf("seed %d: window %d is unknown although no message was lost", seed, o.Index)
			}
			unknown++
		}
	}
	if measured < 800 || unknown < 100 || found < 100 {
		t.Errorf("%d windows measured, %d of them beyond the limit, %d unknown: want more of each", measured, found, unknown)
	}
	t.Logf("%d windows measured, %d of them beyond the limit, %d unknown", measured, found, unknown)
}
