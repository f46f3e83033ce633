package connlimit

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestABoundIsLoggedOnceAMinute: a flood fills no log.
func TestABoundIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		away := NewRefusals(prometheus.NewCounterVec(prometheus.CounterOpts{Name: "turned_away"}, []string{"bound"}))
		away.LogTo(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
		for range 3 {
			for range 100 {
				away.Count(BoundAddress, "address", "10.0.0.1")
			}
			away.Count(BoundPods, "namespace", "shop")
			time.Sleep(logPause)
		}
		if len(lines) != 6 {
			t.Errorf("%d lines in three minutes, want one a minute for each bound:\n%s", len(lines), strings.Join(lines, "\n"))
		}
		if last := lines[len(lines)-2]; !strings.Contains(last, "10.0.0.1") || !strings.Contains(last, `"unloggedBefore"=99`) {
			t.Errorf("a line says %s, want the address and that 99 were not logged", last)
		}
		if n := testutil.ToFloat64(away.counted.WithLabelValues("address")); n != 300 {
			t.Errorf("%v are counted, want 300", n)
		}
	})
}

// TestEachBoundIsExplained: a line without a cause helps nobody.
func TestEachBoundIsExplained(t *testing.T) {
	for _, b := range []Bound{BoundConnections, BoundAddress, BoundTime, BoundPods, BoundNamespace, BoundPod, BoundMessages} {
		if causes[b] == "" {
			t.Errorf("bound %q is not explained", b)
		}
	}
	if len(causes) != 7 {
		t.Errorf("%d bounds are explained, want 7", len(causes))
	}
}
