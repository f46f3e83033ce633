package coordinator

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weir-dev/weir/internal/audit"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
)

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
		r.Hottest = append(r.Hottest, &fleetpb.HotKey{Hash: hash, Admitted: most, Refused: most, Error: most})
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
