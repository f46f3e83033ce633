package concurrency

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/concurrency/coordinator/memory"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
)

// A cutoff is a holder that the coordinator does not hear any more, and that admits
// all it may at the last instant. Another holder waits for its share.
type cutoff struct {
	gain    float64 // of the coordinator's clock over the holders'
	ttl     time.Duration
	margin  time.Duration
	request time.Duration // how long requests take
	abort   bool
}

// overlap returns the most that a backend with a limit of 4 had in flight.
func (c cutoff) overlap(t *testing.T) int64 {
	var b backend
	synctest.Test(t, func(t *testing.T) {
		coordinator := memory.New(memory.Options{Clock: watch(c.gain), Term: 1, First: true})
		cfg := fixed("cut off", 4)
		cfg.Params.TTL, cfg.Margin = micros(c.ttl), c.margin
		if c.abort {
			cfg.OnFenced = Abort
		}
		l := newLine(coordinator)
		cut := open(t, cfg, l)
		l.set(func() { l.deaf = true })

		end := lifetime(cfg.Params.TTL) - c.margin // of the share that was granted now
		time.Sleep(end - 100*time.Millisecond)
		cfg.Holder, cfg.Margin = "other", 0
		cfg.Heartbeat = Heartbeat{Interval: time.Millisecond, MinInterval: time.Millisecond}
		other := open(t, cfg, coordinator)
		ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond+c.margin+min(c.request, time.Second))
		defer stop()
		var work sync.WaitGroup
		work.Go(func() {
			for ctx.Err() == nil {
				for range fill(t, other) {
					b.enter()
				}
				time.Sleep(time.Millisecond)
			}
		})
		time.Sleep(100*time.Millisecond - 1)
		for _, s := range take(t, cut, 4) {
			b.enter()
			work.Go(func() {
				select {
				case <-time.After(c.request):
				case <-s.Fenced():
				case <-ctx.Done():
				}
				b.leave(1)
			})
		}
		work.Wait()
	})
	return b.worst
}

// TestMarginOfTheFence derives what the margin has to cover. The coordinator counts the
// time to live from when a beat reached it, here at once, and the holder from when it
// sent the beat.
func TestMarginOfTheFence(t *testing.T) {
	const ppm = 1e-6
	for name, tc := range map[string]struct {
		cutoff
		holds bool
	}{
		"requests take as long as the margin":                   {cutoff{0, 2 * time.Second, 500 * time.Millisecond, 500 * time.Millisecond, false}, true},
		"and the coordinator's clock is fast by 200 ppm":        {cutoff{200 * ppm, 2 * time.Second, 500 * time.Millisecond, 500 * time.Millisecond, false}, true},
		"and it is slow by 200 ppm":                             {cutoff{-200 * ppm, 2 * time.Second, 500 * time.Millisecond, 500 * time.Millisecond, false}, true},
		"requests take longer than the margin":                  {cutoff{0, 2 * time.Second, 500 * time.Millisecond, 505 * time.Millisecond, false}, false},
		"requests take any time, but are aborted":               {cutoff{200 * ppm, 2 * time.Second, 500 * time.Millisecond, time.Hour, true}, true},
		"no margin, and requests that take none":                {cutoff{200 * ppm, time.Minute, 0, 1, false}, true},
		"no margin, and requests are aborted":                   {cutoff{200 * ppm, time.Minute, 0, time.Hour, true}, true},
		"no margin, and requests that take some":                {cutoff{0, time.Minute, 0, 20 * time.Millisecond, false}, false},
		"no margin, and a clock that is fast by 400 ppm":        {cutoff{400 * ppm, time.Minute, 0, 1, false}, false},
		"no margin, and such a clock, and requests are aborted": {cutoff{400 * ppm, time.Minute, 0, time.Hour, true}, false},
		"a margin that covers such a clock":                     {cutoff{400 * ppm, time.Minute, 15 * time.Millisecond, 1, false}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if worst := tc.overlap(t); (worst <= 4) != tc.holds {
				t.Errorf("%d were in flight below a limit of 4, want it to hold: %v", worst, tc.holds)
			}
		})
	}
}

func TestShareEndsWithoutARequest(t *testing.T) {
	for action, ended := range map[FenceAction]bool{Drain: false, Abort: true} {
		synctest.Test(t, func(t *testing.T) {
			l := newLine(remember())
			cfg := fixed("a", 4)
			cfg.OnFenced = action
			g := open(t, cfg, l)
			s := take(t, g, 3)
			l.set(func() { l.deaf = true })
			over := func() bool {
				select {
				case <-s[0].Fenced():
					return true
				default:
					return false
				}
			}
			pass(lifetime(cfg.Params.TTL) - cfg.Margin - 1)
			if st := g.Stats(); st.Fenced || st.Share != 4 || over() {
				t.Errorf("fenced too early: %+v", st)
			}
			pass(1)
			if over() != ended {
				t.Errorf("fence action %d: asked to end: %v, want %v", action, over(), ended)
			}
			st := g.Stats()
			if !st.Fenced || st.Share != 0 || st.Ceiling != 0 || st.Fences != 1 || st.InFlight != 3 {
				t.Errorf("at the end of the share: %+v", st)
			}
			if want := map[bool]int64{true: 3}[ended]; st.Aborted != want {
				t.Errorf("%d aborted, want %d", st.Aborted, want)
			}
			expect(t, g, Fenced)
			release(s)
			expect(t, g, Fenced)

			l.set(func() { l.deaf = false })
			pass(time.Second)
			again := take(t, g, 4)
			if st := g.Stats(); st.Fenced || st.Fences != 1 {
				t.Errorf("after an answer: %+v", st)
			}
			select {
			case <-again[0].Fenced():
				t.Error("a request of the next share was asked to end")
			default:
			}
		})
	}
}

// TestAbortEndsWhatOutlivedAFence fences a guard whose requests drain, and has it abort
// afterwards.
func TestAbortEndsWhatOutlivedAFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(remember())
		cfg := fixed("a", 4)
		cfg.OnFenced = Drain
		g := open(t, cfg, l)
		s := take(t, g, 1)
		l.set(func() { l.deaf = true })
		pass(2 * lifetime(cfg.Params.TTL))
		if st := g.Stats(); st.Fences != 1 || !s[0].Lapsed() {
			t.Fatalf("%d fences, and lapsed: %v", st.Fences, s[0].Lapsed())
		}
		l.set(func() { l.deaf = false })
		cfg.OnFenced = Abort
		g.Reconfigure(cfg)
		pass(time.Second)
		l.set(func() { l.deaf = true })
		pass(2 * lifetime(cfg.Params.TTL))
		select {
		case <-s[0].Fenced():
		default:
			t.Error("a request from before the first fence was not asked to end by the second")
		}
		release(s)
	})
}

// TestProcessThatWasStoppedChecksTheShareFirst lets time pass that the guard's own
// timers know nothing of.
func TestProcessThatWasStoppedChecksTheShareFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, fixed("a", 4), constant(4))
		s := take(t, g, 1)
		g.clock.Skip(2 * time.Second)
		expect(t, g, Fenced)
		release(s)
		expect(t, g, Fenced)
	})
}

func TestSuspendedMachineEndsItsRequestsWhenItResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64
		l := newLine(remember())
		cfg := fixed("a", 4)
		cfg.OnFenced = Abort
		g := newGuard(cfg, l, monotonic.New(func() time.Duration { return time.Duration(slept.Load()) }))
		synctest.Wait()
		s := take(t, g, 1)
		l.set(func() { l.deaf = true })
		slept.Add(int64(5 * time.Second))
		began := time.Now()
		<-s[0].Fenced()
		if took := time.Since(began); took > monotonic.WatchInterval {
			t.Errorf("noticed after %v", took)
		}
		release(s)
		g.Close(t.Context())
	})
}

// TestAnswerOnTheWayDuringASuspensionIsLate has the share of an answer end before it
// arrives.
func TestAnswerOnTheWayDuringASuspensionIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(constant(4))
		l.back = 300 * time.Millisecond
		g := open(t, fixed("a", 4), l)
		expect(t, g, Unassigned)
		g.clock.Skip(3 * time.Second)
		pass(300 * time.Millisecond)
		expect(t, g, Fenced)
	})
}

// TestQuarantineConfirmsNoShareThatExpiredOnTheWay has a share end, without a timer
// that knows it, before a leader that knows nothing confirms it.
func TestQuarantineConfirmsNoShareThatExpiredOnTheWay(t *testing.T) {
	for name, tc := range map[string]struct {
		stopped time.Duration
		want    int64
	}{
		"it lasts":   {200 * time.Millisecond, 4},
		"it expired": {600 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(constant(4))
				g := open(t, fixed("a", 4), l)
				l.set(func() {
					l.back = 100 * time.Millisecond
					l.to = answers(func(c pool.Command) (pool.Grant, error) {
						grant, err := constant(4)(c)
						grant.Term, grant.TTL, grant.Quarantined = 2, 10*limiter.Second, limiter.Second
						return grant, err
					})
				})
				pass(time.Second)
				g.clock.Skip(tc.stopped)
				pass(100 * time.Millisecond)
				expectShare(t, g, tc.want)
			})
		})
	}
}

func TestMarginThatChangesAppliesToTheShareInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(constant(4))
		cfg := fixed("a", 4)
		cfg.Params.TTL = 10 * limiter.Second
		g := open(t, cfg, l)
		l.set(func() { l.deaf = true })
		cfg.Margin = 1200 * time.Millisecond
		g.Reconfigure(cfg)
		pass(799*time.Millisecond - 400*time.Microsecond - 2)
		take(t, g, 1)
		pass(2)
		expect(t, g, Fenced)
	})
}
