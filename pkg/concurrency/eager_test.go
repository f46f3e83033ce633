package concurrency

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/concurrency/coordinator/memory"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
)

// A load keeps a guard as full as it gets with requests that take that long.
func load(ctx context.Context, wait *sync.WaitGroup, g *Guard, clients int, takes func() time.Duration) {
	for range clients {
		wait.Go(func() {
			for ctx.Err() == nil {
				s, v := g.Acquire(ctx, Request{})
				if v != Admitted {
					time.Sleep(5 * time.Millisecond)
					continue
				}
				time.Sleep(takes())
				s.Release(Served)
			}
		})
	}
}

func always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// ramp returns how long a holder that joins a full fleet of one waits for its even part
// of the limit, from when it joined and from when the other heard of it.
func ramp(t *testing.T, cfg Config, request, trip time.Duration) (joined, heard time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		var clients sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		coordinator := remember()
		far := func() *line {
			l := newLine(coordinator)
			l.there, l.back = trip/2, trip/2
			return l
		}
		cfg.Holder = "first"
		first := far()
		a := open(t, cfg, first)
		load(ctx, &clients, a, 8, always(request))
		pass(5300 * time.Millisecond) // its last beat was 300 ms ago
		began := time.Now()
		cfg.Holder = "second"
		b := open(t, cfg, far())
		load(ctx, &clients, b, 8, always(request))
		for b.Stats().InFlight < 4 {
			time.Sleep(time.Millisecond)
		}
		joined = time.Since(began)
		first.mu.Lock()
		for _, at := range first.sent {
			if at.After(began) {
				heard = time.Since(at)
				break
			}
		}
		first.mu.Unlock()
		stop()
		clients.Wait()
	})
	return joined, heard
}

func TestEagerBeatsFillAShareWithinDrainAndRoundTrip(t *testing.T) {
	const (
		request = 330 * time.Millisecond
		trip    = 10 * time.Millisecond
		least   = 20 * time.Millisecond
	)
	for name, h := range map[pool.Handoff]string{pool.Acknowledged: "acknowledged", pool.Occupancy: "occupancy"} {
		t.Run(h, func(t *testing.T) {
			cfg := eager("", 8)
			cfg.Params.Handoff = name
			cfg.Heartbeat.MinInterval = least
			// The other hears of the holder with its next beat, drains, pushes; the pull
			// after that brings the share.
			joined, heard := ramp(t, cfg, request, trip)
			if limit := request + 2*trip + least + 10*time.Millisecond; heard > limit {
				t.Errorf("filled %v after the others heard of the holder, want at most %v", heard, limit)
			}
			cfg.Heartbeat.Eager = false
			slow, _ := ramp(t, cfg, request, trip)
			t.Logf("eager %v after joining, %v after the others heard; periodic %v", joined, heard, slow)
			if slow < 1900*time.Millisecond || slow > 2500*time.Millisecond {
				t.Errorf("periodic beats filled the share in %v, want about two heartbeats", slow)
			}
		})
	}
}

// beatsOf returns how many beats are sent in 20 seconds after a fleet of two has run
// for some time, at work as the function says, and how many the interval makes.
func beatsOf(t *testing.T, cfg Config, work func(ctx context.Context, w *sync.WaitGroup, a, b *Guard)) (sent, want int64) {
	synctest.Test(t, func(t *testing.T) {
		var clients sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		coordinator := remember()
		cfg.Holder = "a"
		a := open(t, cfg, coordinator)
		cfg.Holder = "b"
		b := open(t, cfg, coordinator)
		work(ctx, &clients, a, b)
		time.Sleep(8*time.Second + 50*time.Millisecond)
		before := a.Stats().Beats + b.Stats().Beats
		time.Sleep(20 * time.Second)
		sent = a.Stats().Beats + b.Stats().Beats - before
		stop()
		clients.Wait()
	})
	return sent, 40
}

func TestNoEagerBeatsAtSteadyState(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var mu sync.Mutex
	random := func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(rng.Int64N(int64(300 * time.Millisecond)))
	}
	for name, work := range map[string]func(context.Context, *sync.WaitGroup, *Guard, *Guard){
		"nobody asks": func(context.Context, *sync.WaitGroup, *Guard, *Guard) {},
		"one is full": func(ctx context.Context, w *sync.WaitGroup, a, _ *Guard) { load(ctx, w, a, 16, random) },
		"both are full": func(ctx context.Context, w *sync.WaitGroup, a, b *Guard) {
			load(ctx, w, a, 16, random)
			load(ctx, w, b, 16, random)
		},
		"both have little to do": func(ctx context.Context, w *sync.WaitGroup, a, b *Guard) {
			load(ctx, w, a, 2, random)
			load(ctx, w, b, 2, random)
		},
	} {
		for _, allocation := range []pool.Allocation{pool.EqualSplit, pool.DemandProportional} {
			t.Run(fmt.Sprintf("%s, allocation %d", name, allocation), func(t *testing.T) {
				cfg := eager("", 8)
				cfg.Params.Allocation = allocation
				if sent, want := beatsOf(t, cfg, work); sent != want {
					t.Errorf("%d beats in 20 s of two holders, want %d", sent, want)
				}
			})
		}
	}
}

// TestHolderThatWaitsForLongRequestsOfAnotherStopsToPull has the other hold all slots
// for hours.
func TestHolderThatWaitsForLongRequestsOfAnotherStopsToPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		coordinator := remember()
		streams := open(t, eager("streams", 8), coordinator)
		held := take(t, streams, 8)
		starved := open(t, eager("starved", 8), coordinator)
		asks := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				expect(t, starved, Full)
			}
		}
		asks(4 * time.Second)
		before := starved.Stats().Beats
		if before < 20 {
			t.Errorf("%d beats in the first 4 s: it does not pull", before)
		}
		asks(20 * time.Second)
		if got := starved.Stats().Beats - before; got > 21 {
			t.Errorf("%d beats in 20 s, want one a second", got)
		}
		release(held[:4])
		pass(1500 * time.Millisecond)
		take(t, starved, 4)
		release(held[4:])
	})
}

func same(*Config) {}

func periodic(c *Config) { c.Heartbeat.Eager = false }

// sentAfter returns when the next beat of the line was sent after the instant.
func (l *line) sentAfter(at time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.sent, func(s time.Time) bool { return s.After(at) })
	if i < 0 {
		return -1
	}
	return l.sent[i].Sub(at)
}

// TestEagerBeats has a holder of 8 units learn with its beat of second 1 that its share
// is 4 now, because somebody waits.
func TestEagerBeats(t *testing.T) {
	shrunk := func(waiting bool) answers {
		return func(c pool.Command) (pool.Grant, error) {
			g, _ := constant(8)(c)
			g.Holders, g.Granted, g.InFlight = 2, 8, 2
			if c.Seq > 1 {
				g.Share, g.Generation = 4, 2
			}
			if waiting && c.Seq > 1 {
				g.Granted = 4
			}
			return g, nil
		}
	}
	occupancy := func(c *Config) { c.Params.Handoff = pool.Occupancy }
	demand := func(c *Config) { c.Params.Allocation = pool.DemandProportional }
	for name, tc := range map[string]struct {
		answers  answers
		change   func(*Config)
		inFlight int           // at second 1
		released int           // 250 ms after it
		want     time.Duration // from second 1 to the next beat
	}{
		"acknowledge: what is in flight fits in":            {shrunk(true), same, 4, 0, 100 * time.Millisecond},
		"what is in flight does not fit in":                 {shrunk(true), same, 5, 0, time.Second},
		"push: what is in flight drained":                   {shrunk(true), same, 7, 3, 250 * time.Millisecond},
		"what is in flight did not drain enough":            {shrunk(true), same, 7, 2, time.Second},
		"nobody waits":                                      {shrunk(false), same, 4, 0, time.Second},
		"what is in flight drained, and nobody waits":       {shrunk(false), same, 7, 3, time.Second},
		"what is in flight fits in, but beats are periodic": {shrunk(true), periodic, 4, 0, time.Second},
		"fits in, but nothing has to be confirmed":          {shrunk(true), occupancy, 4, 0, time.Second},
		"drained, and nothing has to be confirmed":          {shrunk(true), occupancy, 7, 3, 250 * time.Millisecond},
		"fits in, but all have one more than they use":      {shrunk(true), demand, 4, 0, time.Second},
		"what is in flight drained, but beats are periodic": {shrunk(true), periodic, 7, 3, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(tc.answers)
				cfg := eager("a", 8)
				tc.change(&cfg)
				g := open(t, cfg, l)
				s := take(t, g, tc.inFlight)
				pass(time.Second)
				learned := time.Now()
				pass(250 * time.Millisecond)
				release(s[:tc.released])
				pass(800 * time.Millisecond)
				if got := l.sentAfter(learned); got != tc.want {
					t.Errorf("the next beat was sent after %v, want %v", got, tc.want)
				}
				release(s)
			})
		})
	}
}

func TestPull(t *testing.T) {
	for name, tc := range map[string]struct {
		answers answers
		change  func(*Config)
		asks    time.Duration
		want    time.Duration
	}{
		"refused below an even part":               {part(2, 8), same, 50 * time.Millisecond, 100 * time.Millisecond},
		"refused below an even part, late":         {part(2, 8), same, 400 * time.Millisecond, 400 * time.Millisecond},
		"refused at an even part":                  {part(4, 8), same, 50 * time.Millisecond, time.Second},
		"refused below it, but beats are periodic": {part(2, 8), periodic, 50 * time.Millisecond, time.Second},
		"refused below it by what it infers":       {part(3, 8), func(c *Config) { c.Law.Max = 2 }, 50 * time.Millisecond, time.Second},
		"not refused":                              {part(2, 8), same, 0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(tc.answers)
				cfg := eager("a", 8)
				tc.change(&cfg)
				began := time.Now()
				g := open(t, cfg, l)
				if tc.asks > 0 {
					pass(tc.asks)
					release(fill(t, g))
				}
				pass(1500*time.Millisecond - tc.asks)
				if got := l.sentAfter(began); got != tc.want {
					t.Errorf("the second beat was sent after %v, want %v", got, tc.want)
				}
			})
		})
	}
}

// TestPullOfAWaiterInTheQueue asks once: a waiter keeps asking.
func TestPullOfAWaiterInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		coordinator := remember()
		full := open(t, eager("full", 2), coordinator)
		held := take(t, full, 2)
		pass(350 * time.Millisecond)
		cfg := eager("waits", 2)
		cfg.Slots.Queue.MaxLength, cfg.Slots.Queue.MaxWait = 1, micros(10*time.Second)
		g := open(t, cfg, coordinator)
		began := time.Now()
		got := make(chan time.Duration, 1)
		go func() {
			s, _ := g.Acquire(t.Context(), Request{})
			got <- time.Since(began)
			s.Release(Served)
		}()
		pass(450 * time.Millisecond)
		held[0].Release(Served)
		// The other learns at second 1 that its share is 1, and confirms 100 ms later:
		// 750 ms from here.
		if d := <-got; d > 850*time.Millisecond {
			t.Errorf("admitted after %v", d)
		}
		held[1].Release(Served)
	})
}

// TestHolderWithLittleBeatsWhenAQuarantineEnds asks for no slot: nothing else is a
// reason to beat.
func TestHolderWithLittleBeatsWhenAQuarantineEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		share int64
		want  []time.Duration
	}{
		"little": {2, []time.Duration{0, time.Second, 1100 * time.Millisecond, 1700 * time.Millisecond}},
		"enough": {4, []time.Duration{0, time.Second, 1100 * time.Millisecond, 2100 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end := time.Now().Add(1700 * time.Millisecond)
				l := newLine(answers(func(c pool.Command) (pool.Grant, error) {
					g, err := part(tc.share, 8)(c)
					if c.Seq > 1 {
						g.Term, g.Quarantined = 2, max(0, micros(time.Until(end)))
					}
					return g, err
				}))
				open(t, eager("a", 8), l)
				pass(2200 * time.Millisecond)
				if diff := cmp.Diff(tc.want, l.offsets()); diff != "" {
					t.Errorf("beats (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestQuarantine has a leader that knows nothing begin while a holder uses its share.
func TestQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := remember()
		la, lb := newLine(first), newLine(first)
		a := open(t, eager("a", 8), la)
		s := take(t, a, 8)
		pass(time.Second - 1) // just before its beat
		next := memory.New(memory.Options{Clock: watch(0), Term: 2})
		began := time.Now()
		for _, l := range []*line{la, lb} {
			l.set(func() { l.to = next })
		}
		b := open(t, eager("b", 8), lb)
		expect(t, b, Full)
		pass(102 * time.Millisecond)
		if c := la.last(t); c.Term != 2 || c.Held != 4 {
			t.Errorf("the share was not confirmed at once: %+v", c)
		}
		beats := b.Stats().Beats
		for range 15 {
			pass(100 * time.Millisecond)
			expect(t, b, Full)
		}
		if got := b.Stats().Beats - beats; got > 2 {
			t.Errorf("%d beats in 1.5 s of a quarantine, in which pulling is in vain", got)
		}
		release(s)
		for len(fill(t, b)) == 0 {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(began); took < 2*time.Second || took > 2200*time.Millisecond {
			t.Errorf("the first share was granted %v after the leader began, want just after 2 s", took)
		}
		if st := a.Stats(); st.Fences != 0 {
			t.Errorf("a holder whose share was confirmed was fenced: %+v", st)
		}
	})
}
