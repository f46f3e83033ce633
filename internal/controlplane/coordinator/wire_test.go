package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weir-dev/weir/internal/controlplane/audit"
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

// largestReport is of one limit, as large as sidecars make it: 16,384 keys and another
// row's, and as many rows as are taken.
func largestReport() *fleetpb.LimitReport {
	const most = maxCount
	hash := strings.Repeat("f", hashSize)
	r := &fleetpb.LimitReport{
		Namespace: "shop", Policy: "checkout", Limit: "all", Generation: most,
		AdmittedTotal: most, RefusedTotal: most, RoundTripsTotal: most, ActiveKeys: most, UnplacedTotal: most,
		StoreError: strings.Repeat("e", 1024),
	}
	for range audit.MaxHottest {
		r.Hottest = append(r.Hottest, &fleetpb.HotKey{Hash: hash, Admitted: most, Refused: most, Error: most, AdmittedPerMinute: float64(most), RefusedPerMinute: float64(most)})
	}
	for keys := 16_384 + maxKeys; len(r.Windows) < maxRows; {
		w := &fleetpb.WindowReport{Final: true, Admitted: most, Refused: most, Local: most, LocalShare: most, Unlisted: []int64{most, most, most, most}}
		for i := range int64(limiter.MaxRates) {
			rate := &fleetpb.Rate{Limit: limiter.MaxLimit, Burst: limiter.MaxLimit, WindowMicros: int64(limiter.MaxWindow) - i, OffsetMicros: -1}
			w.Windows = append(w.Windows, &fleetpb.Window{Rate: rate, Index: most, Granted: most})
		}
		for ; keys > 0 && len(w.Keys) < maxKeys; keys-- {
			w.Keys = append(w.Keys, &fleetpb.KeyCount{Hash: hash, Admitted: most, Refused: most})
		}
		r.Windows = append(r.Windows, w)
	}
	return r
}

func TestTheLargestReportFits(t *testing.T) {
	m := &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Report{Report: &fleetpb.Report{Limits: []*fleetpb.LimitReport{largestReport()}}}}
	if n := proto.Size(m); n > maxMessage*3/4 {
		t.Errorf("the largest report has %d bytes: %d leave no room for more fields", n, maxMessage)
	}
}

// TestWhatComesEarlyIsBoundedInBytes: a holder that reports more has to come back.
func TestWhatComesEarlyIsBoundedInBytes(t *testing.T) {
	large := &fleetpb.LimitReport{StoreError: strings.Repeat("e", maxMessage/2)}
	for name, tc := range map[string]struct {
		reports int
		want    codes.Code
	}{"as many as are kept": {3, codes.OK}, "more": {4, codes.Unavailable}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := lead(t, &memoryTerms{}, &policies{})
				defer l.end()
				s := l.connect(pod("shop", "web-0"), "1")
				defer s.close()
				for range tc.reports {
					s.report(large)
				}
				if tc.want == codes.OK {
					if l.present.Load().sessions.len() != 1 {
						t.Error("the session has ended")
					}
					return
				}
				if got := status.Code(s.failure()); got != tc.want {
					t.Errorf("code = %v, want %v", got, tc.want)
				}
			})
		})
	}
}

// TestLongReasonsAreCut, those that sidecars give and those that name what they sent.
func TestLongReasonsAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 1, 10, limiter.Second)
		l := lead(t, &memoryTerms{}, publishing(p))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		long := strings.Repeat("\u00e9", maxReason)
		s.acknowledge(l.present.Load().sessions.of("web-0-uid").serves.version, long)
		time.Sleep(time.Second)
		if seen := l.Observe("shop", "checkout").Sessions; len(seen) != 1 || seen[0].Error != long[:maxReason] {
			t.Errorf("sessions = %d with a reason of %d bytes, want %d", len(seen), len(seen[0].Error), maxReason)
		}
		reply := s.lease(p, p.Limits[0], func(r *fleetpb.LeaseRequest) { r.Key.Limit = long })
		if n := len(reply.GetError()); n == 0 || n > maxReason {
			t.Errorf("the answer has an error of %d bytes, want at most %d", n, maxReason)
		}
		beat := &fleetpb.Heartbeat{Id: 1, Namespace: "shop", Pool: long}
		s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Heartbeat{Heartbeat: beat}})
		if n := len(s.recv().GetShare().GetError()); n == 0 || n > maxReason {
			t.Errorf("the answer to a beat has an error of %d bytes, want at most %d", n, maxReason)
		}
	})
}

func TestShortened(t *testing.T) {
	for _, tc := range []struct {
		text string
		most int
		want string
	}{{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"ab\u00e9", 3, "ab"}, {"\u00e9\u00e9", 2, "\u00e9"}} {
		if got := shortened(tc.text, tc.most); got != tc.want || !utf8.ValidString(got) {
			t.Errorf("%s: %q, want %q", fmt.Sprint(tc.text, " in ", tc.most), got, tc.want)
		}
	}
}
