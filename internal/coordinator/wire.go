package coordinator

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-dev/weir/internal/audit"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// Bounds of what a holder may send.
const (
	// maxMessage is in bytes. The largest are reports, which come in parts of a mebibyte.
	// A part may be one limit alone: 16,384 keys and those of one row more, of 54 bytes at
	// most, in 256 rows, which is less than a mebibyte as well.
	maxMessage = 2 << 20
	maxHeaders = 64 << 10 // bytes of a stream's metadata, of which the token is the most

	maxVersion = 256  // bytes of a build's or of a config's
	maxRows    = 256  // in one LimitReport
	maxKeys    = 1024 // of one row
	maxCount   = int64(1) << 52
	maxIndex   = int64(1) << 53 // end of a window, in microseconds
	hashSize   = 32             // hexadecimal digits
	maxName    = 63             // bytes of a partition's
)

func windowsFrom(in []*fleetpb.Window) (limiter.Windows, error) {
	var out limiter.Windows
	if len(in) == 0 || len(in) > limiter.MaxRates {
		return out, fmt.Errorf("%d windows, must be 1 to %d", len(in), limiter.MaxRates)
	}
	for _, w := range in {
		rate := rateFrom(w.GetRate())
		if rate.Limit < 1 || rate.Limit > limiter.MaxLimit || rate.Window < limiter.MinWindow || rate.Window > limiter.MaxWindow ||
			rate.Offset < -limiter.MaxOffset || rate.Offset > limiter.MaxOffset {
			return out, fmt.Errorf("a window of %d units in %dµs", rate.Limit, rate.Window)
		}
		if w.GetIndex() < 0 || w.GetIndex() >= maxIndex/int64(rate.Window) {
			return out, fmt.Errorf("window index %d", w.GetIndex())
		}
		for _, other := range out.Slice() {
			if other.Window == rate.Window && other.Offset == rate.Offset && other.Monthly == rate.Monthly {
				return out, fmt.Errorf("two windows of %dµs", rate.Window)
			}
		}
		out.Open[out.N] = limiter.OpenWindow{Rate: rate, Index: w.GetIndex(), Granted: w.GetGranted()}
		out.N++
	}
	return out, nil
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

func reportFrom(in *fleetpb.LimitReport) (out audit.Report, err error) {
	out = audit.Report{
		Generation: in.GetGeneration(),
		Totals: audit.Totals{
			Admitted: in.GetAdmittedTotal(), Refused: in.GetRefusedTotal(), RoundTrips: in.GetRoundTripsTotal(),
			Unplaced: in.GetUnplacedTotal(),
		},
		ActiveKeys: in.GetActiveKeys(),
	}
	if n := len(in.GetWindows()); n > maxRows {
		return out, fmt.Errorf("%d windows, at most %d are taken", n, maxRows)
	}
	for _, w := range in.GetWindows() {
		row, err := rowFrom(w)
		if err != nil {
			return out, err
		}
		out.Rows = append(out.Rows, row)
	}
	if out.Hottest, err = hottestFrom(in.GetHottest()); err != nil {
		return out, err
	}
	return out, counts(out.Totals.Admitted, out.Totals.Refused, out.Totals.RoundTrips, out.Totals.Unplaced, out.ActiveKeys)
}

func hottestFrom(in []*fleetpb.HotKey) ([]audit.KeyCount, error) {
	if len(in) > audit.MaxHottest {
		return nil, fmt.Errorf("%d hottest keys, at most %d are taken", len(in), audit.MaxHottest)
	}
	var out []audit.KeyCount
	for _, k := range in {
		if k.GetHash() != "" && !validHash(k.GetHash()) {
			return nil, fmt.Errorf("key hash %q", shortened(k.GetHash(), hashSize))
		}
		if err := counts(k.GetAdmitted(), k.GetRefused(), k.GetError()); err != nil {
			return nil, err
		}
		out = append(out, audit.KeyCount{Hash: k.GetHash(), Admitted: k.GetAdmitted(), Refused: k.GetRefused()})
	}
	return out, nil
}

func rowFrom(in *fleetpb.WindowReport) (audit.Row, error) {
	windows, err := windowsFrom(in.GetWindows())
	if err != nil {
		return audit.Row{}, err
	}
	row := audit.Row{
		Windows:  windows,
		Final:    in.GetFinal(),
		Admitted: in.GetAdmitted(), Refused: in.GetRefused(),
		Local: in.GetLocal(), LocalShare: in.GetLocalShare(),
	}
	if n := len(in.GetKeys()); n > maxKeys {
		return row, fmt.Errorf("%d keys of one row, at most %d are taken", n, maxKeys)
	}
	if row.Keys, err = keysFrom(in.GetKeys()); err != nil {
		return row, err
	}
	if n := len(in.GetUnlisted()); n > 0 && n != windows.N {
		return row, fmt.Errorf("%d counts of unlisted keys for %d windows", n, windows.N)
	}
	copy(row.Unlisted[:], in.GetUnlisted())
	return row, errors.Join(counts(row.Admitted, row.Refused, row.Local, row.LocalShare), counts(row.Unlisted[:]...))
}

func keysFrom(in []*fleetpb.KeyCount) ([]audit.KeyCount, error) {
	var out []audit.KeyCount
	for _, k := range in {
		if k.GetHash() != "" && !validHash(k.GetHash()) {
			return nil, fmt.Errorf("key hash %q", shortened(k.GetHash(), hashSize))
		}
		if err := counts(k.GetAdmitted(), k.GetRefused()); err != nil {
			return nil, err
		}
		out = append(out, audit.KeyCount{Hash: k.GetHash(), Admitted: k.GetAdmitted(), Refused: k.GetRefused()})
	}
	return out, nil
}

func poolReportFrom(in *fleetpb.PoolReport) (out audit.PoolReport, err error) {
	out = audit.PoolReport{
		Generation: in.GetGeneration(),
		Share:      in.GetShare(), Ceiling: in.GetCeiling(), Inferred: in.GetInferred(),
		InFlight: in.GetInFlight(), Peak: in.GetPeak(), Spared: in.GetSpared(), Queued: in.GetQueued(), Fenced: in.GetFenced(),
		Baseline: limiter.Micros(in.GetBaselineMicros()), Latency: limiter.Micros(in.GetLatencyMicros()),
		Admitted: in.GetAdmittedTotal(), Refused: in.GetRefusedTotal(),
		Fences: in.GetFencedTotal(), Aborted: in.GetAbortedTotal(),
		CoordinatorError: shortened(in.GetCoordinatorError(), maxErrorText),
		Limit:            in.GetLimit(), Holders: in.GetHolders(),
		Occupied: in.GetOccupied(), Bound: in.GetBound(), Quarantined: limiter.Micros(in.GetQuarantinedMicros()),
	}
	if n := len(in.GetPartitions()); n > policy.MaxPartitions {
		return out, fmt.Errorf("%d partitions, at most %d are taken", n, policy.MaxPartitions)
	}
	for _, p := range in.GetPartitions() {
		if len(p.GetName()) > maxName {
			return out, fmt.Errorf("a partition's name of %d bytes", len(p.GetName()))
		}
		if err := counts(p.GetGuaranteed(), p.GetInFlight(), p.GetRefusedTotal()); err != nil {
			return out, err
		}
		out.Partitions = append(out.Partitions, audit.PartitionReport{
			Name: p.GetName(), Guaranteed: p.GetGuaranteed(), InFlight: p.GetInFlight(), Refused: p.GetRefusedTotal(),
		})
	}
	return out, counts(out.Share, out.Ceiling, out.Inferred, out.InFlight, out.Peak, out.Spared, out.Queued,
		int64(out.Baseline), int64(out.Latency), out.Admitted, out.Refused, out.Fences, out.Aborted,
		out.Limit, out.Holders, out.Occupied, out.Bound, int64(out.Quarantined))
}

// shortened returns the beginning of a text, most bytes at most.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") // not half a rune, which no message may hold
}

func counts(values ...int64) error {
	for _, v := range values {
		if v < 0 || v > maxCount {
			return fmt.Errorf("a count of %d", v)
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
