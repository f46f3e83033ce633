package coordinator

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-dev/weir/internal/coordinator/connlimit"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestAPodThatSendsTooMuchWaits: its stream is read at the rate, and goes on.
func TestAPodThatSendsTooMuchWaits(t *testing.T) {
	p := limited("shop", 1, 10, limiter.Second)
	withOne(t, p, func(t *testing.T, l *leader, s *sidecar) {
		const seconds = 1
		began := time.Now()
		old := &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Acknowledge{Acknowledge: &fleetpb.Acknowledge{Version: "old"}}}
		for range (1 + seconds) * messageRate {
			s.send(old)
		}
		if r := s.lease(p, p.Limits[0]); r.GetGranted() != 1 {
			t.Errorf("reply = %v, want a unit", r)
		}
		if took := time.Since(began); took < seconds*time.Second || took > (seconds+1)*time.Second {
			t.Errorf("it took %s, want %d s", took, seconds)
		}
		if n := testutil.ToFloat64(l.metrics.refusals.WithLabelValues(string(connlimit.BoundMessages))); n == 0 {
			t.Error("nothing shows that the pod met the bound")
		}
	})
}
