package coordinator

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
)

// FuzzWindowsPassTheWire: windows that a store can name at any instant of its clock are
// read as they were written, whatever kind of rate they are of; none of the others is.
func FuzzWindowsPassTheWire(f *testing.F) {
	const now = 1_795_000_000_000_000 // in November 2026
	day, hour := int64(limiter.Day), 3600*int64(limiter.Second)
	for _, at := range []int64{0, now, int64(limiter.MaxInstant), -1, int64(limiter.MaxInstant) + 1, -1 << 63, 1<<63 - 1} {
		f.Add(at, int64(10), int64(limiter.Second), int64(0), int64(0), false, int64(5))
		f.Add(at, int64(10), int64(limiter.MinWindow), int64(20), int64(0), false, int64(0))
		f.Add(at, int64(1_000_000), int64(limiter.MaxWindow), int64(0), 2*hour, true, day)
		f.Add(at, int64(1_000_000), int64(limiter.MaxWindow), int64(0), -14*hour, true, day)
		f.Add(at, int64(7), 7*day, int64(0), 4*day-5*hour, false, day)
		f.Add(at, int64(7), 7*day, int64(0), -8*day, false, 7*day)
	}
	f.Fuzz(func(t *testing.T, at, limit, length, burst, offset int64, monthly bool, other int64) {
		rates := []limiter.Rate{{Limit: limit, Window: limiter.Micros(length), Burst: burst, Offset: limiter.Micros(offset), Monthly: monthly}}
		if other != 0 {
			rates = append(rates, limiter.Rate{Limit: limit, Window: limiter.Micros(other)})
		}
		if length == 0 {
			return // no instant is in a window without a length
		}
		worked := slices.ContainsFunc([]limiter.Algorithm{limiter.FixedWindow, limiter.GCRA}, func(a limiter.Algorithm) bool {
			return limiter.Params{Algorithm: a, Rates: rates}.Validate() == nil
		})
		var in limiter.Windows
		for _, r := range rates {
			w := r.WindowAt(limiter.Instant(at))
			w.Granted = limit
			in.Open[in.N], in.N = w, in.N+1
		}
		out, err := windowsFrom(windowsTo(in))
		if worked && at >= 0 && at <= int64(limiter.MaxInstant) && (err != nil || out != in) {
			t.Fatalf("%+v became %+v: %v", in, out, err)
		}
		if err == nil {
			checkSpans(t, out)
		}
	})
}

// FuzzWindowsOfAnybody: whatever a holder writes is read or refused.
func FuzzWindowsOfAnybody(f *testing.F) {
	seed := func(w ...*fleetpb.Window) {
		data, err := proto.Marshal(&fleetpb.WindowReport{Windows: w})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	second := &fleetpb.Rate{Limit: 1, WindowMicros: int64(limiter.Second)}
	seed()
	seed(&fleetpb.Window{})
	seed(&fleetpb.Window{Rate: second, Index: 1 << 62})
	seed(&fleetpb.Window{Rate: second, Index: 1_795_000_000}, &fleetpb.Window{Rate: second, Index: 1_795_000_000})
	f.Fuzz(func(t *testing.T, data []byte) {
		var r fleetpb.WindowReport
		if proto.Unmarshal(data, &r) != nil {
			return
		}
		out, err := windowsFrom(r.GetWindows())
		if err == nil {
			checkSpans(t, out)
		}
	})
}

// checkSpans fails the test when a window ends before it begins, or when a store's clock
// cannot show it.
func checkSpans(t *testing.T, windows limiter.Windows) {
	t.Helper()
	for _, w := range windows.Slice() {
		if length := w.End().Sub(w.Start()); length < limiter.MinWindow || length > limiter.MaxWindow || w.End() <= 0 || w.Start() > limiter.MaxInstant {
			t.Fatalf("%+v spans %d to %d", w, w.Start(), w.End())
		}
	}
}
