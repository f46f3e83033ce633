package simulate

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/leadership"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// TestNoWindowIsServedTwiceWhenClocksAreSet has a server keep the counters, and controllers
// that follow each other.
func TestNoWindowIsServedTwiceWhenClocksAreSet(t *testing.T) {
	fixed := weir
	fixed.Size = twotier.Size{Type: twotier.Fixed, Batch: 20}
	for name, c := range map[string]struct {
		controllers int
		config      twotier.Config
	}{
		"a server":              {0, weir},
		"a server, fixed batch": {0, fixed},
		"two controllers":       {2, fixed},
		"three controllers":     {3, weir},
	} {
		t.Run(name, func(t *testing.T) {
			var offered, admitted int64
			var terms uint64
			for seed := range uint64(seeds) {
				w := newWorld(StormOfClocks(seed, Weir(name, c.config), perWindow, c.controllers))
				w.run()
				w.close()
				offered, admitted = offered+w.audit.offered, admitted+w.audit.admitted
				if w.controllers != nil {
					terms += w.controllers.terms
				}
				if w.audit.overshoot > 0 {
					t.Errorf("seed %d: admitted %d too many", seed, w.audit.overshoot)
				}
			}
			if admitted < offered/20 || c.controllers > 0 && terms < 3*seeds/2 {
				t.Errorf("admitted %d of %d in %d terms: the test tests little", admitted, offered, terms)
			}
		})
	}
}

// TestABrokenRuleOfClocksIsNoticed takes away one rule at a time that keeps a window from
// being served again by another clock.
func TestABrokenRuleOfClocksIsNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		controllers int
		weaken      func(r *rules)
	}{
		"holders send no floor": {0, func(r *rules) {
			r.floor = func(store.Reading, int64) limiter.Instant { return 0 }
		}},
		"holders name no memory": {0, func(r *rules) {
			r.forgot = func(_ store.Recollection, begun limiter.Instant) limiter.Instant { return begun }
		}},
		"a leader begins at its own time of day": {3, func(r *rules) {
			r.start = func(wall, _ limiter.Instant) limiter.Instant { return wall }
		}},
		"a leader serves beyond what it leased": {3, func(r *rules) {
			r.covers = func(leadership.Renewal, limiter.Instant, time.Duration, time.Duration) bool { return true }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(200) {
				w := newWorld(StormOfClocks(seed, Weir("weir", weir), perWindow, c.controllers))
				c.weaken(&w.rules)
				w.run()
				w.close()
				if w.audit.overshoot > 0 {
					t.Logf("seed %d: admitted %d too many", seed, w.audit.overshoot)
					return
				}
			}
			t.Error("nobody noticed in 200 runs")
		})
	}
}

func TestAStormOfClocksReplays(t *testing.T) {
	for _, n := range []int{0, 3} {
		play := func() Result { return Run(StormOfClocks(7, Weir("weir", weir), perWindow, n)) }
		if a, b := play(), play(); a.Digest != b.Digest || a.Admitted == 0 {
			t.Errorf("%d controllers: digests %x and %x, want the same", n, a.Digest, b.Digest)
		}
	}
}

// TestASettingMovesTheTimeOfDayAlone so nothing that is counted on the clock steps.
func TestASettingMovesTheTimeOfDayAlone(t *testing.T) {
	c := clock{read: 5_000_000, set: 2_000_000}
	if got := c.at(3_000_000); got != 8_000_000 {
		t.Errorf("counts %d", got)
	}
	if got := c.micros(3_000_000); got != 10_000 {
		t.Errorf("shows %d", got)
	}
}
