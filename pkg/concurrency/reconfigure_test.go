package concurrency

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/limiter"
)

// with returns cfg after a change of its pool.
func with(cfg Config, generation int64, change func(*Config)) Config {
	cfg.Params.Generation = generation
	change(&cfg)
	return cfg
}

func TestEditReachesTheCoordinatorAtOnce(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"eager beats":    func(*Config) {},
		"periodic beats": func(c *Config) { c.Heartbeat.Eager = false },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				coordinator := remember()
				cfg := eager("a", 8)
				change(&cfg)
				g := open(t, cfg, coordinator)
				s := take(t, g, 8)
				pass(300 * time.Millisecond)
				g.Reconfigure(with(cfg, 2, func(c *Config) {
					c.Params.Min, c.Params.Max, c.Params.Initial, c.Law.Max = 5, 5, 5, 5
				}))
				synctest.Wait()
				if st := g.Stats(); st.Share != 5 || st.InFlight != 8 || st.Grant.Limit != 5 {
					t.Errorf("after the limit was lowered: %+v", st)
				}
				release(s[:3])
				expect(t, g, Full)
				release(s[3:])
				release(take(t, g, 5))
				g.Reconfigure(with(cfg, 3, func(c *Config) {
					c.Params.Min, c.Params.Max, c.Params.Initial, c.Law.Max = 12, 12, 12, 12
				}))
				pass(99 * time.Millisecond)
				expectShare(t, g, 5)
				pass(time.Millisecond)
				expectShare(t, g, 12)
			})
		})
	}
}

func expectShare(t *testing.T, g *Guard, want int64) {
	t.Helper()
	if got := g.Stats().Share; got != want {
		t.Errorf("share %d, want %d", got, want)
	}
}

func TestSameConfigurationBringsNoBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, eager("a", 8), remember())
		pass(300 * time.Millisecond)
		g.Reconfigure(eager("a", 8))
		pass(300 * time.Millisecond)
		if got := g.Stats().Beats; got != 1 {
			t.Errorf("%d beats, want 1", got)
		}
	})
}

func TestFasterHeartbeatStartsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed("a", 8)
		cfg.Params.TTL, cfg.Heartbeat.Interval = 60*limiter.Second, 30*time.Second
		l := newLine(remember())
		g := open(t, cfg, l)
		pass(3 * time.Second)
		cfg.Heartbeat.Interval = 5 * time.Second
		g.Reconfigure(cfg)
		pass(13 * time.Second)
		if diff := cmp.Diff([]time.Duration{0, 5 * time.Second, 10 * time.Second, 15 * time.Second}, l.offsets()); diff != "" {
			t.Errorf("beats (-want +got):\n%s", diff)
		}
	})
}

func TestWaitingRequestsAndCountsOutliveAnEdit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := queued("a", 1, 2, 10*limiter.Second)
		cfg.Slots.Partitions = []slots.Partition{{Name: "gold"}, {Name: "silver"}, {Name: "bronze"}}
		g := open(t, cfg, constant(1))
		held := take(t, g, 1)
		q := newQueuer(t, g)
		q.ask(t.Context(), "first")
		q.ask(t.Context(), "second")
		for partition, times := range []int{1, 2, 3} {
			for range times {
				g.Acquire(t.Context(), Request{Partition: partition})
			}
		}
		g.Acquire(t.Context(), Request{Partition: slots.Rest})
		cfg.Slots.Partitions = []slots.Partition{{Name: "bronze"}, {Name: "copper"}, {Name: "gold"}}
		g.Reconfigure(cfg)
		var got []int64
		for _, p := range g.Stats().Partitions {
			got = append(got, p.Refused)
		}
		if diff := cmp.Diff([]int64{3, 0, 1}, got); diff != "" {
			t.Errorf("refused (-want +got):\n%s", diff)
		}
		if st := g.Stats(); st.Refused != 7 || st.Queued != 2 || st.Partitions[2].InFlight != 1 {
			t.Errorf("%+v", st)
		}
		release(held)
		q.expect("first: Admitted at 0s")
		release([]Slot{<-q.slots})
		q.expect("second: Admitted at 0s")
		release([]Slot{<-q.slots})
	})
}
