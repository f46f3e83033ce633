package coordinator

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/poolaudit"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// Bounds of what a holder may send.
const (
	// maxMessage is in bytes. The largest are reports, which come in parts of a mebibyte.
	// A part may be one limit alone: 16,384 keys and those of one row more, of 54 bytes at
	// most, in 256 rows, which is also less than a mebibyte.
	maxMessage = 2 << 20
	maxHeaders = 64 << 10 // bytes of a stream's metadata, most of them the token

	maxShares  = 4096 // policies whose number of holders a holder was sent
	maxVersion = 256  // bytes of a build's or of a config's
	maxRows    = 256  // in one LimitReport
	maxKeys    = 1024 // of one row
	maxCount   = int64(1) << 52
	hashSize   = 32 // hexadecimal digits
	maxName    = 63 // bytes of a partition's
)

func windowsFrom(in []*fleetpb.Window) (limiter.Windows, error) {
	var out limiter.Windows
	if len(in) == 0 || len(in) > limiter.MaxRates {
		return out, fmt.Errorf("windows has %d entries, must be 1 to %d", len(in), limiter.MaxRates)
	}
	for i, w := range in {
		out.Open[i] = limiter.OpenWindow{Rate: rateFrom(w.GetRate()), Index: w.GetIndex(), Granted: w.GetGranted()}
	}
	out.N = len(in)
	return out, out.Validate()
}

func windowsTo(in limiter.Windows) []*fleetpb.Window {
	out := make([]*fleetpb.Window, 0, in.N)
	for _, w := range in.Slice() {
		out = append(out, &fleetpb.Window{
			Rate:    rateTo(w.Rate),
			Index:   w.Index,
			Granted: w.Granted,
		})
	}
	return out
}

func ratesFrom(in []*fleetpb.Rate) []limiter.Rate {
	out := make([]limiter.Rate, len(in))
	for i, r := range in {
		out[i] = rateFrom(r)
	}
	return out
}

func rateFrom(r *fleetpb.Rate) limiter.Rate {
	return limiter.Rate{
		Limit: r.GetLimit(), Window: limiter.Micros(r.GetWindowMicros()), Burst: r.GetBurst(),
		Offset: limiter.Micros(r.GetOffsetMicros()), Monthly: r.GetMonthly(),
	}
}

func rateTo(r limiter.Rate) *fleetpb.Rate {
	return &fleetpb.Rate{
		Limit: r.Limit, WindowMicros: int64(r.Window), Burst: r.Burst, OffsetMicros: int64(r.Offset), Monthly: r.Monthly,
	}
}

// reportFrom returns what can be read of a report, and what is wrong with each row that
// cannot. ok is false when that is the whole report.
func reportFrom(in *fleetpb.LimitReport) (out audit.Report, ok bool, wrong []error) {
	out = audit.Report{
		Generation: in.GetGeneration(),
		Totals: audit.Totals{
			Admitted: in.GetAdmittedTotal(), Refused: in.GetRefusedTotal(), RoundTrips: in.GetRoundTripsTotal(),
			Unplaced: in.GetUnplacedTotal(),
		},
		ActiveKeys: in.GetActiveKeys(),
		Placed:     in.PlacedTotal,
		Waiting:    in.GetWaiting(),
	}
	if err := inRange(
		count{"generation", out.Generation}, count{"admitted_total", out.Totals.Admitted}, count{"refused_total", out.Totals.Refused},
		count{"round_trips_total", out.Totals.RoundTrips}, count{"unplaced_total", out.Totals.Unplaced}, count{"active_keys", out.ActiveKeys},
		count{"placed_total", in.GetPlacedTotal()},
	); err != nil {
		return out, false, []error{err}
	}
	rows, hottest := in.GetWindows(), in.GetHottest()
	if n := len(rows); n > maxRows {
		wrong, rows = append(wrong, fmt.Errorf("windows has %d entries, more than %d", n, maxRows)), rows[:maxRows]
	}
	for i, w := range rows {
		row, err := rowFrom(w)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("windows[%d].%w", i, err))
			continue
		}
		out.Rows = append(out.Rows, row)
	}
	if n := len(hottest); n > audit.MaxHottest {
		wrong, hottest = append(wrong, fmt.Errorf("hottest has %d entries, more than %d", n, audit.MaxHottest)), hottest[:audit.MaxHottest]
	}
	for i, k := range hottest {
		key, err := hotKeyFrom(k)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("hottest[%d].%w", i, err))
			continue
		}
		out.Hottest = append(out.Hottest, key)
	}
	return out, true, wrong
}

func rowFrom(in *fleetpb.WindowReport) (audit.Row, error) {
	windows, err := windowsFrom(in.GetWindows())
	if err != nil {
		return audit.Row{}, err
	}
	row := audit.Row{
		Windows:  windows,
		Since:    limiter.Instant(in.GetSinceMicros()),
		Final:    in.GetFinal(),
		Admitted: in.GetAdmitted(), Refused: in.GetRefused(),
		Local: in.GetLocal(), LocalShare: in.GetLocalShare(),
		Age: time.Duration(min(max(0, in.GetAgeMicros()), maxCount)) * time.Microsecond,
	}
	if row.Keys, err = keysFrom(in.GetKeys()); err != nil {
		return row, err
	}
	if n := len(in.GetUnlisted()); n > 0 && n != windows.N {
		return row, fmt.Errorf("unlisted has %d entries, but there are %d windows", n, windows.N)
	}
	copy(row.Unlisted[:], in.GetUnlisted())
	for _, n := range in.GetUnlisted() {
		if err := inRange(count{"unlisted", n}); err != nil {
			return row, err
		}
	}
	return row, inRange(count{"since_micros", int64(row.Since)}, count{"admitted", row.Admitted}, count{"refused", row.Refused}, count{"local", row.Local}, count{"local_share", row.LocalShare})
}

func keysFrom(in []*fleetpb.KeyCount) ([]audit.KeyCount, error) {
	if n := len(in); n > maxKeys {
		return nil, fmt.Errorf("keys has %d entries, more than %d", n, maxKeys)
	}
	var out []audit.KeyCount
	for i, k := range in {
		key, err := keyFrom(k)
		if err != nil {
			return nil, fmt.Errorf("keys[%d].%w", i, err)
		}
		out = append(out, key)
	}
	return out, nil
}

// keyFrom returns what is counted of a key.
func keyFrom(in interface {
	GetHash() string
	GetAdmitted() int64
	GetRefused() int64
},
) (audit.KeyCount, error) {
	if in.GetHash() != "" && !validHash(in.GetHash()) {
		return audit.KeyCount{}, fmt.Errorf("hash is %q, not %d hexadecimal digits", shortened(in.GetHash(), hashSize), hashSize)
	}
	out := audit.KeyCount{Hash: in.GetHash(), Admitted: in.GetAdmitted(), Refused: in.GetRefused()}
	return out, inRange(count{"admitted", out.Admitted}, count{"refused", out.Refused})
}

// hotKeyFrom returns what is counted of one of the hottest keys.
func hotKeyFrom(in *fleetpb.HotKey) (audit.HotKey, error) {
	counted, err := keyFrom(in)
	out := audit.HotKey{KeyCount: counted, AdmittedPerMinute: in.GetAdmittedPerMinute(), RefusedPerMinute: in.GetRefusedPerMinute()}
	return out, cmp.Or(err, inRange(count{"error", in.GetError()}),
		isRate("admitted_per_minute", out.AdmittedPerMinute), isRate("refused_per_minute", out.RefusedPerMinute))
}

// isRate returns an error unless x is a number of units.
func isRate(name string, x float64) error {
	if !(x >= 0 && x <= float64(maxCount)) { // nor is it NaN
		return fmt.Errorf("%s is %g, outside 0 to %d", name, x, maxCount)
	}
	return nil
}

func poolReportFrom(in *fleetpb.PoolReport) (out poolaudit.Report, err error) {
	out = poolaudit.Report{
		Generation: in.GetGeneration(),
		Share:      in.GetShare(), Ceiling: in.GetCeiling(), Inferred: in.GetInferred(),
		InFlight: in.GetInFlight(), Peak: in.GetPeak(), Spared: in.GetSpared(), Queued: in.GetQueued(), Fenced: in.GetFenced(),
		Baseline: limiter.Micros(in.GetBaselineMicros()), Latency: limiter.Micros(in.GetLatencyMicros()),
		Admitted: in.GetAdmittedTotal(), Refused: in.GetRefusedTotal(), KeyMissing: in.GetKeyMissingTotal(),
		Fences: in.GetFencedTotal(), Aborted: in.GetAbortedTotal(),
		CoordinatorError: shortened(in.GetCoordinatorError(), maxErrorText),
		Limit:            in.GetLimit(), Holders: in.GetHolders(),
		Occupied: in.GetOccupied(), Bound: in.GetBound(), Quarantined: limiter.Micros(in.GetQuarantinedMicros()),
	}
	if n := len(in.GetPartitions()); n > policy.MaxPartitions {
		return out, fmt.Errorf("partitions has %d entries, more than %d", n, policy.MaxPartitions)
	}
	for i, p := range in.GetPartitions() {
		if n := len(p.GetName()); n > maxName {
			return out, fmt.Errorf("partitions[%d].name has %d bytes, more than %d", i, n, maxName)
		}
		if err := inRange(count{"guaranteed", p.GetGuaranteed()}, count{"in_flight", p.GetInFlight()}, count{"refused_total", p.GetRefusedTotal()}); err != nil {
			return out, fmt.Errorf("partitions[%d].%w", i, err)
		}
		out.Partitions = append(out.Partitions, poolaudit.PartitionReport{
			Name: p.GetName(), Guaranteed: p.GetGuaranteed(), InFlight: p.GetInFlight(), Refused: p.GetRefusedTotal(),
		})
	}
	return out, inRange(
		count{"generation", out.Generation}, count{"share", out.Share}, count{"ceiling", out.Ceiling}, count{"inferred", out.Inferred},
		count{"in_flight", out.InFlight}, count{"peak", out.Peak}, count{"spared", out.Spared}, count{"queued", out.Queued},
		count{"baseline_micros", int64(out.Baseline)}, count{"latency_micros", int64(out.Latency)},
		count{"admitted_total", out.Admitted}, count{"refused_total", out.Refused},
		count{"key_missing_total", out.KeyMissing}, count{"fenced_total", out.Fences}, count{"aborted_total", out.Aborted},
		count{"limit", out.Limit}, count{"holders", out.Holders}, count{"occupied", out.Occupied}, count{"bound", out.Bound},
		count{"quarantined_micros", int64(out.Quarantined)},
	)
}

// shortened returns the beginning of a text, most bytes at most.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") // not half a rune, which no message may hold
}

// A count is a field that counts something.
type count struct {
	field string
	value int64
}

// inRange returns an error that names the first field whose value nobody can have counted.
func inRange(counts ...count) error {
	for _, c := range counts {
		if c.value < 0 || c.value > maxCount {
			return fmt.Errorf("%s is %d, outside 0 to %d", c.field, c.value, maxCount)
		}
	}
	return nil
}

// validHash reports whether s can have come from store.HashValue. Requests
// without a key share the counter with the empty hash.
func validHash(s string) bool {
	if len(s) != hashSize {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// sharesFrom returns the numbers of holders that a sidecar says it was sent.
func sharesFrom(namespace string, in []*fleetpb.Holders_Count) map[types.NamespacedName]int64 {
	out := make(map[types.NamespacedName]int64, len(in))
	for _, c := range in {
		if c.GetNamespace() == namespace && c.GetHolders() > 0 && len(out) < maxShares {
			out[types.NamespacedName{Namespace: namespace, Name: c.GetPolicy()}] = c.GetHolders()
		}
	}
	return out
}
