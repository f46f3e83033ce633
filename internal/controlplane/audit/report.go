package audit

import (
	"iter"
	"math"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit/meter"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A Report is what one holder says of one limit. Counts are of units of cost.
type Report struct {
	Generation int64 // of the policy the holder enforces
	Totals     Totals
	ActiveKeys int64
	Rows       []Row
	// Placed are the units, admitted and refused, of all rows since the holder's process
	// started: those that it forgot, and the others as they were reported on this stream.
	// nil when the holder does not say.
	Placed *int64
	// Waiting says that more rows wait than the report had room for.
	Waiting bool
	// Hottest are the keys the holder was asked for most, at most MaxHottest.
	Hottest []HotKey
}

// MaxHottest is the most keys that a report names as the hottest.
const MaxHottest = 32

// Totals count since the holder's process started.
type Totals struct {
	Admitted, Refused int64
	RoundTrips        int64 // store calls
	Unplaced          int64 // of Admitted: in no row
}

// counts returns what is averaged.
func (t Totals) counts() meter.Counts {
	return meter.Counts{Admitted: t.Admitted, Refused: t.Refused, RoundTrips: t.RoundTrips}
}

// A Row is what a holder let through while the same windows, one a rate, were
// open. Rows are cumulative: a row replaces the one the holder sent before for
// the same windows.
type Row struct {
	Windows    limiter.Windows // Granted is ignored
	Since      limiter.Instant // as in Config: windows of another period are others
	Final      bool            // the windows are over for this holder
	Age        time.Duration   // since the holder first used them; 0 when it does not say
	Admitted   int64           // over all keys
	Refused    int64
	Local      int64      // of Admitted: by the failure action, not from a grant
	LocalShare int64      // the most one key could be admitted locally; 0 when unused
	Keys       []KeyCount // the keys that matter; of a limit with a key
	// Unlisted is, for each of the windows, the most that a key that is not among
	// Keys was admitted in it, in whatever rows that was counted. 0 says nothing while Keys
	// do not account for all that was admitted.
	Unlisted [limiter.MaxRates]int64
}

// A KeyCount is what a holder let through of one key.
type KeyCount struct {
	Hash              string // store.HashValue of the key's value
	Admitted, Refused int64
}

// A HotKey is what one of the hottest keys was admitted and refused since the holder started,
// and in the last minutes.
type HotKey struct {
	KeyCount
	AdmittedPerMinute, RefusedPerMinute float64
}

// perMinute is what the key was asked for in the last minutes, in whole units a minute.
func (k *HotKey) perMinute() int64 {
	return int64(math.Round(k.AdmittedPerMinute)) + int64(math.Round(k.RefusedPerMinute))
}

// A Query asks holders for the exact counts of some keys in a window that is
// over. Its answers go to Limit.Reply.
type Query struct {
	ID      uint64          // unique within the Limit
	Window  limiter.Windows // of one rate
	Since   limiter.Instant // as in Config
	Hashes  []string
	Holders []Holder // to ask
}

// tuple names the windows of a row: their period, lengths and indices without what
// varies while they are open.
type tuple struct {
	limiter.Windows
	since limiter.Instant
}

func tupleOf(row *Row) tuple {
	t := tuple{Windows: row.Windows, since: row.Since}
	for i := range t.Slice() {
		t.Open[i].Granted, t.Open[i].Rate = 0, windowsOf(t.Open[i].Rate)
	}
	return t
}

// windows yields the windows of the row.
func (r *Row) windows() iter.Seq2[windowID, limiter.OpenWindow] {
	return func(yield func(windowID, limiter.OpenWindow) bool) {
		for _, open := range r.Windows.Slice() {
			if !yield(windowID{windows: windowsOf(open.Rate), index: open.Index, since: r.Since}, open) {
				return
			}
		}
	}
}

// end returns the instant the first of the windows ends.
func (t tuple) end() limiter.Instant {
	end := t.Open[0].End()
	for _, w := range t.Open[1:t.N] {
		end = min(end, w.End())
	}
	return end
}

// start returns the instant the last of the windows began.
func (t tuple) start() limiter.Instant {
	start := t.Open[0].Start()
	for _, w := range t.Open[1:t.N] {
		start = max(start, w.Start())
	}
	return start
}
