package coordinator

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestABoundIsLoggedOnceAMinute: a flood fills no log.
func TestABoundIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		away := newTurned(newMetrics(nil, func() float64 { return 0 }))
		away.logTo(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
		for range 3 {
			for range 100 {
				away.away(boundAddress, "address", "10.0.0.1")
			}
			away.away(boundPods, "namespace", "shop")
			time.Sleep(logPause)
		}
		if len(lines) != 6 {
			t.Errorf("%d lines in three minutes, want one a minute for each bound:\n%s", len(lines), strings.Join(lines, "\n"))
		}
		if last := lines[len(lines)-2]; !strings.Contains(last, "10.0.0.1") || !strings.Contains(last, `"unloggedBefore"=99`) {
			t.Errorf("a line says %s, want the address and that 99 were not logged", last)
		}
		if n := testutil.ToFloat64(away.metrics.turned.WithLabelValues("address")); n != 300 {
			t.Errorf("%v are counted, want 300", n)
		}
	})
}

// TestEachBoundIsExplained: a line without a cause helps nobody.
func TestEachBoundIsExplained(t *testing.T) {
	for _, b := range []portBound{boundConnections, boundAddress, boundTime, boundPods, boundNamespace, boundPod, boundMessages} {
		if turnedWhy[b] == "" {
			t.Errorf("bound %q is not explained", b)
		}
	}
	if len(turnedWhy) != 7 {
		t.Errorf("%d bounds are explained, want 7", len(turnedWhy))
	}
}
