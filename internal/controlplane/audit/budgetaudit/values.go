package budgetaudit

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Bounds of what the audit of the values of a budget remembers and asks for.
const (
	MaxWanted    = 512  // values of one window whose exact counts are asked for
	maxRefused   = 16   // of these, because they were refused
	MaxRowKeys   = 1024 // values that one row names
	maxValueRows = 2 * ledger.MaxClosed
)

// A ValueRow is what one member counted in one window, over all its sidecars. It replaces the
// row that the member sent before.
type ValueRow struct {
	Index    int64
	Limit    int64 // of each value
	Admitted int64 // over all values
	Refused  int64
	Keys     []audit.KeyCount // exact counts of the values that matter
	Hidden   int64            // the most that a value not among Keys was admitted
	Complete bool             // every sidecar's counts are in it
}

// counted returns the units that the row accounts for. They only grow.
func (r *ValueRow) counted() int64 { return r.Admitted + r.Refused }

// before reports whether the row was sent before the other, or by a process that knows less.
func (r *ValueRow) before(other *ValueRow) bool {
	if r.counted() != other.counted() {
		return r.counted() < other.counted()
	}
	return other.Complete && (!r.Complete || len(r.Keys) < len(other.Keys))
}

// Wanted are values of one window whose exact counts a member has to send: its next
// row of the window is to name them, also those that it never saw.
type Wanted struct {
	Index  int64
	Hashes []string // ascending
}

// Values measures Δ and U of a budget with a key over all its members in two phases. First
// every member names the values that it admitted more of than its part, the limit divided by the
// number of members, and reports the most that any other was admitted. A value beyond its limit
// over all members is beyond its part in one of them, so it is named by one. Then the others are
// asked for exactly the values that may be beyond the limit.
//
// A window is measured when every member listed while it was open has sent all of that.
// Nothing is waited for and nothing is sent twice here: members ask what is wanted
// of them, and rows may be lost, repeated or come in any order. A window that began before
// the audit did is not measured, since members may have been listed then that are not
// now.
//
// It belongs to one caller at a time.
type Values struct {
	window  limiter.Micros
	since   limiter.Instant
	listed  map[string]limiter.Instant // when each member was last listed
	held    []version                  // of the overrides, oldest first
	windows map[int64]*valueWindow
}

// A valueWindow is what members reported of one window.
type valueWindow struct {
	index, limit int64
	rows         map[string]ValueRow // by member
	own          map[string]int64    // limits of values that have their own

	fresh   bool // the fields below follow from rows
	outcome Outcome
	wanted  []string // ascending
}

// NewValues returns the audit of a budget with windows of that length, which begins at
// the instant now on the coordinator's clock.
func NewValues(window limiter.Micros, now limiter.Instant) *Values {
	return &Values{
		window: window, since: now,
		listed: map[string]limiter.Instant{}, windows: map[int64]*valueWindow{},
	}
}

// Window returns the length of the windows.
func (v *Values) Window() limiter.Micros { return v.window }

// List notes which members the budget has at the instant now.
func (v *Values) List(members []string, now limiter.Instant) {
	for _, m := range members {
		if at, known := v.listed[m]; !known {
			v.listed[m] = now
			v.review() // it may have taken part in the open window
		} else {
			v.listed[m] = max(at, now)
		}
	}
	oldest := limiter.Instant(int64(now) - maxValueRows*int64(v.window))
	maps.DeleteFunc(v.listed, func(_ string, at limiter.Instant) bool { return at < oldest })
}

func (v *Values) review() {
	for _, w := range v.windows {
		w.fresh = false
	}
}

// Enter enters a row of a member, unless what is known already says more. Rows of windows
// that are not over, or that began before the audit, are left out.
func (v *Values) Enter(member string, row ValueRow, now limiter.Instant) {
	start := limiter.Instant(row.Index * int64(v.window))
	if start < v.since || end(v.window, row.Index) > now {
		return
	}
	w := v.windows[row.Index]
	if w == nil {
		w = &valueWindow{index: row.Index, limit: row.Limit, rows: map[string]ValueRow{}}
		v.windows[row.Index] = w
		v.forget()
	}
	old, known := w.rows[member]
	if known && row.before(&old) {
		return
	}
	w.limit = min(w.limit, row.Limit)
	w.rows[member] = row
	w.fresh = false
}

// forget drops the oldest windows when there are too many.
func (v *Values) forget() {
	for len(v.windows) > maxValueRows {
		delete(v.windows, slices.Min(slices.Collect(maps.Keys(v.windows))))
	}
}

// Wanted returns what the member has to report exactly, oldest window first.
func (v *Values) Wanted(member string) []Wanted {
	var out []Wanted
	for _, w := range v.each() {
		if row, ok := w.rows[member]; ok && len(w.wanted) > 0 && !row.names(w.wanted) {
			out = append(out, Wanted{Index: w.index, Hashes: w.wanted})
		}
	}
	return out
}

// Outcomes returns what is known of windows that are over, oldest first.
func (v *Values) Outcomes() []Outcome {
	var out []Outcome
	for _, w := range v.each() {
		out = append(out, w.outcome)
	}
	return out
}

// each returns the windows, reviewed and oldest first.
func (v *Values) each() []*valueWindow {
	all := slices.SortedFunc(maps.Values(v.windows), func(a, b *valueWindow) int { return cmp.Compare(a.index, b.index) })
	for _, w := range all {
		if !w.fresh {
			w.own = v.own(w)
			w.measure(v.required(w.index))
		}
	}
	return all
}

// required returns the members that may have admitted something in the window, ordered by name.
func (v *Values) required(index int64) []string {
	start := limiter.Instant(index * int64(v.window))
	var out []string
	for m, at := range v.listed {
		if at >= start {
			out = append(out, m)
		}
	}
	slices.Sort(out)
	return out
}
