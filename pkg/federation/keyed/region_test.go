package keyed_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/testing/federationtest"
	"github.com/weir-dev/weir/pkg/federation/keyed"
	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
	"github.com/weir-dev/weir/pkg/store"
)

// TestAKeyThatIsUsedOnceCostsOneRoundTrip and nothing after that.
func TestAKeyThatIsUsedOnceCostsOneRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, params(100, time.Minute), 10*time.Millisecond, plain)
		for key := range 20 {
			if got := w.ask(0, key, 1, 1); got != 1 {
				t.Fatalf("%d units", got)
			}
		}
		time.Sleep(50 * time.Second)
		if w.hub.Seen().Messages != 20 || w.hub.Seen().Asks != 20 {
			t.Errorf("%d messages for %d keys, want one for each of 20", w.hub.Seen().Messages, w.hub.Seen().Asks)
		}
	})
}

// TestWhatIsExpectedIsOnItsWay: a command that follows waits for the rest of the round trip, and costs no
// other.
func TestWhatIsExpectedIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, params(100, time.Minute), 10*time.Millisecond, plain)
		w.nextWindow()
		region, key := w.regions[0], store.Key{Hash: "k1"}
		c := limiter.Command{Op: limiter.Take, Min: 1, Want: 5}
		for range 3 {
			region.Expect(key, c)
		}
		time.Sleep(6 * time.Millisecond)
		began := time.Now()
		if got, waited := w.ask(0, 1, 1, 5), time.Since(began); got != 5 || waited != 4*time.Millisecond {
			t.Errorf("%d units after %v, want 5 after 4ms", got, waited)
		}
		w.ask(0, 1, 1, 1)
		n := w.hub.Seen().Messages
		region.Expect(key, limiter.Command{Op: limiter.Take, Min: 1, Want: 1})
		time.Sleep(20 * time.Millisecond)
		if got := w.ask(0, 1, 1, 1); got != 1 {
			t.Error("nothing is handed on after nobody waited for what was expected")
		}
		if got := w.hub.Seen().Messages; got > n+1 || n != 2 {
			t.Errorf("%d messages, and then %d, want 2 and one more at most", n, got)
		}
		// What is used up, or cannot be had, is not asked for.
		w.ask(1, 2, 100, 100)
		w.ask(0, 2, 1, 1)
		n = w.hub.Seen().Messages
		region.Expect(store.Key{Hash: "k2"}, c)
		w.lines[0].SetCut(true)
		w.ask(0, 3, 1, 1)
		region.Expect(store.Key{Hash: "k4"}, c)
		time.Sleep(20 * time.Millisecond)
		if got := w.hub.Seen().Messages; got != n {
			t.Errorf("%d messages for what is in vain", got-n)
		}
	})
}

// TestKeysShareMessages has many keys be asked for at once.
func TestKeysShareMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, params(100, time.Minute), 10*time.Millisecond, plain)
		var all sync.WaitGroup
		for key := range 2000 {
			all.Go(func() { w.ask(0, key, 1, 1) })
		}
		all.Wait()
		if w.hub.Seen().Asks != 2000 || w.hub.Seen().Messages > 12 || w.hub.Seen().Largest > 512 {
			t.Errorf("%d messages of at most %d keys for %d", w.hub.Seen().Messages, w.hub.Seen().Largest, w.hub.Seen().Asks)
		}
		if s := w.regions[0].Stats(); s.Messages != int64(w.hub.Seen().Messages) || s.Asks != 2000 || s.Granted != 2000 || s.Taken != 2000 || s.Values != 2000 || !s.Connected {
			t.Errorf("%+v", s)
		}
	})
}

// TestThatNothingIsLeftIsRemembered asks again and again for a key that is used up.
func TestThatNothingIsLeftIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, params(5, 10*time.Second), 10*time.Millisecond, plain)
		w.nextWindow()
		if got := w.ask(1, 1, 1, 9); got != 5 {
			t.Fatalf("%d units, want the limit of 5", got)
		}
		before := w.hub.Seen().Messages
		for range 50 {
			w.ask(0, 1, 1, 1)
			time.Sleep(100 * time.Millisecond)
		}
		if n := w.hub.Seen().Messages - before; n != 1 {
			t.Errorf("%d messages for a key that is used up, want 1", n)
		}
		w.nextWindow()
		if got := w.ask(0, 1, 1, 1); got != 1 {
			t.Error("nothing is granted in the next window")
		}
		w.requireWithin()
	})
}

// TestPatience has answers take longer than requests wait.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, params(5, 10*time.Second), 250*time.Millisecond, plain)
		w.nextWindow()
		began := time.Now()
		if got, waited := w.ask(0, 1, 1, 1), time.Since(began); got != 0 || waited != 100*time.Millisecond {
			t.Errorf("%d units after %v, want a refusal after 100ms", got, waited)
		}
		time.Sleep(200 * time.Millisecond)
		if got := w.ask(0, 1, 1, 1); got != 1 {
			t.Error("what came meanwhile is not handed on")
		}
		if w.hub.Seen().Messages != 1 {
			t.Errorf("%d messages, want 1", w.hub.Seen().Messages)
		}
	})
}

// TestUnitsThatAreGivenBackAreHandedOnAgain in their window alone.
func TestUnitsThatAreGivenBackAreHandedOnAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, params(5, 10*time.Second), 10*time.Millisecond, plain)
		w.nextWindow()
		region, key := w.regions[0], store.Key{Hash: "k1"}
		p := limiter.Params{Rates: []limiter.Rate{{Limit: 5, Window: 10 * limiter.Second}}}
		apply := func(c limiter.Command) limiter.Result {
			t.Helper()
			res, err := region.Apply(t.Context(), key, p, c)
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		taken := apply(limiter.Command{Op: limiter.Take, Min: 1, Want: 5})
		back := limiter.Command{Op: limiter.Return, Want: 3, Windows: taken.Windows, At: taken.Now}
		if res := apply(back); res.Granted != 3 || res.Reason != limiter.Granted {
			t.Errorf("%+v", res)
		}
		if res := apply(limiter.Command{Op: limiter.Peek, Min: 1, Want: 9}); res.Granted != 3 {
			t.Errorf("%+v, want 3 units", res)
		}
		if res := apply(limiter.Command{Op: limiter.Take, Min: 1, Want: 9}); res.Granted != 3 {
			t.Errorf("%+v, want 3 units", res)
		}
		w.nextWindow()
		apply(limiter.Command{Op: limiter.Take, Min: 1, Want: 1})
		if res := apply(back); res.Granted != 0 || res.Reason != limiter.Forfeited {
			t.Errorf("units of another window: %+v", res)
		}
		if _, err := region.Apply(t.Context(), key, p, limiter.Command{Op: limiter.Reset}); err == nil {
			t.Error("a budget is reset")
		}
	})
}

// TestManyKeysOverThreeRegions runs load on keys of very different demand while regions are
// cut off, answers are lost, hubs are killed, and more keys are used than are remembered. No
// key gets more than its limit in any window.
func TestManyKeysOverThreeRegions(t *testing.T) {
	for name, c := range map[string]struct {
		window time.Duration
		keys   int // remembered
	}{
		"all are remembered": {time.Second, 0},
		"few are":            {time.Second, 40},
		"long windows":       {5 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t, params(20, c.window), 8*time.Millisecond, func(cfg *keyed.Config) { cfg.Keys = c.keys })
				dice := rand.New(rand.NewPCG(1, uint64(c.keys)))
				for _, l := range w.lines {
					own := rand.New(rand.NewPCG(dice.Uint64(), 0))
					l.Lose = func() bool { return own.IntN(40) == 0 }
				}
				ended := make(chan struct{})
				var all sync.WaitGroup
				for region := range w.regions {
					for range 6 {
						own := rand.New(rand.NewPCG(dice.Uint64(), 1))
						zipf := rand.NewZipf(own, 1.1, 1, 300)
						all.Go(func() {
							for {
								select {
								case <-ended:
									return
								default:
								}
								least := 1 + own.Int64N(2)
								w.ask(region, int(zipf.Uint64()), least, least+own.Int64N(6))
								time.Sleep(time.Duration(own.Int64N(int64(4 * time.Millisecond))))
							}
						})
					}
				}
				for range 40 {
					time.Sleep(time.Duration(dice.Int64N(int64(c.window))))
					switch dice.IntN(6) {
					case 0:
						w.hub.Stop()
						time.Sleep(time.Duration(dice.Int64N(int64(c.window))))
						w.hub.Restart(false)
					case 1:
						w.hub.Restart(false)
					case 2:
						l := w.lines[dice.IntN(3)]
						l.Set(func() { l.Cut = !l.Cut })
					case 3:
						l, trip := w.lines[dice.IntN(3)], time.Duration(dice.Int64N(int64(60*time.Millisecond)))
						l.Set(func() { l.There = federationtest.Always(trip) })
					}
				}
				before := w.of(0)
				for _, l := range w.lines {
					l.Set(func() { l.Cut, l.Lose = false, never })
				}
				time.Sleep(8*time.Second + 3*c.window) // they try again within 7.5 s
				close(ended)
				all.Wait()
				w.requireWithin()
				if got := w.of(0) - before; got < 2*20 {
					t.Errorf("%d units of the busiest key once all is well again", got)
				}
			})
		})
	}
}

// TestARegionThatIsCutOff hands on what it has, and then refuses.
func TestARegionThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, params(60, 10*time.Second), 10*time.Millisecond, plain)
		w.nextWindow()
		for range 4 { // so that some are in hand
			w.ask(0, 1, 1, 2)
		}
		time.Sleep(time.Second)
		w.lines[0].SetCut(true)
		var got int64
		for range 40 {
			got += w.ask(0, 1, 1, 1)
			time.Sleep(20 * time.Millisecond)
		}
		if got == 0 || got > 20 {
			t.Errorf("%d units without the coordinator", got)
		}
		if s := w.regions[0].Stats(); s.Connected || s.Outages != 1 || s.Err == nil {
			t.Errorf("%+v", s)
		}
		w.lines[0].SetCut(false)
		time.Sleep(8 * time.Second)
		for range 80 { // the first attempt after that may wait for its time
			got = w.ask(0, 1, 1, 1)
			if got > 0 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if s := w.regions[0].Stats(); got != 1 || !s.Connected {
			t.Errorf("%d units, and %+v", got, s)
		}
	})
}

// TestAllThatCanBeIsAdmitted offers three regions three times what the keys have, and twice
// to one of them.
func TestAllThatCanBeIsAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const windows, limit, hot = 5, 100, 10
		w := newTown(t, params(limit, 2*time.Second), 20*time.Millisecond, plain)
		w.nextWindow()
		first := int64(w.hub.Now()) / int64(w.params.Window)
		ended := make(chan struct{})
		var all sync.WaitGroup
		for region := range w.regions {
			for key := range hot {
				own := rand.New(rand.NewPCG(uint64(region), uint64(key)))
				all.Go(func() {
					for {
						select {
						case <-ended:
							return
						case <-time.After(time.Duration(own.Int64N(int64(30*time.Millisecond) / int64(1+region)))):
							w.ask(region, key, 1, 1)
						}
					}
				})
			}
		}
		time.Sleep(windows * 2 * time.Second)
		close(ended)
		all.Wait()
		w.requireWithin()
		var sum int64
		for at, n := range w.admitted {
			if at.index < first+windows {
				sum += n
			}
		}
		used := float64(sum) / (windows * limit * hot)
		t.Logf("%.3f of the limit, %d messages of %d asks, for %d units", used, w.hub.Seen().Messages, w.hub.Seen().Asks, sum)
		if used < 0.97 {
			t.Errorf("%.3f of the limit is used, want 0.97", used)
		}
	})
}

// TestAKeyIsInOneMessageAtATime asks again while a message is under way.
func TestAKeyIsInOneMessageAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, params(100, time.Minute), 10*time.Millisecond, plain)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { w.ask(0, 1, 1, 1) })
			time.Sleep(time.Millisecond)
		}
		time.Sleep(6 * time.Millisecond) // the first has arrived, and one that was sent after it would have
		if w.hub.Seen().Messages != 1 {
			t.Errorf("%d messages arrived, want 1", w.hub.Seen().Messages)
		}
		all.Wait()
		if w.hub.Seen().Messages != 2 || w.of(1) != 3 {
			t.Errorf("%d messages for %d units, want 2 for 3", w.hub.Seen().Messages, w.of(1))
		}
	})
}

func never() bool { return false }

// lacking is a coordinator that never has the time to set units aside.
type lacking struct{ keyed.Coordinator }

func (l lacking) ApplyKeys(ctx context.Context, id string, p ledger.Params, r keys.Request) (keys.Reply, error) {
	reply, err := l.Coordinator.ApplyKeys(ctx, id, p, r)
	for i := range reply.Grants {
		reply.Grants[i] = keys.Grant{Lacks: true}
	}
	return reply, err
}

// TestACoordinatorThatHasNoTime is not asked at once again.
func TestACoordinatorThatHasNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, params(100, time.Minute), 2*time.Millisecond, plain)
		ready := w.hub.ReplaceValues(func(c keyed.Coordinator) keyed.Coordinator { return lacking{c} })
		if got := w.ask(0, 1, 1, 1); got != 0 || w.hub.Seen().Messages != 1 {
			t.Errorf("%d units, %d messages, want one", got, w.hub.Seen().Messages)
		}
		w.hub.ReplaceValues(func(keyed.Coordinator) keyed.Coordinator { return ready })
		time.Sleep(25 * time.Millisecond)
		if got := w.ask(0, 1, 1, 1); got != 1 {
			t.Error("nothing is granted once it has time")
		}
	})
}

// TestAnAnswerOfWindowsOfAnotherLength comes after the edit.
func TestAnAnswerOfWindowsOfAnotherLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, params(50, 10*time.Second), 50*time.Millisecond, plain)
		w.nextWindow()
		done := make(chan int64)
		go func() { done <- w.ask(0, 1, 1, 1) }()
		time.Sleep(10 * time.Millisecond)
		w.regions[0].Reconfigure(keyed.Config{Params: params(50, 20*time.Second), Patience: 100 * time.Millisecond})
		if got := <-done; got != 0 {
			t.Errorf("%d units of a window of the former length", got)
		}
	})
}

// TestASliceOfEachValueNeedsNoCoordinator and is used once in a window, also of values that are
// more than are remembered.
func TestASliceOfEachValueNeedsNoCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const values = 50
		own := slice{units: 3}
		w := newTown(t, params(20, 10*time.Second), 10*time.Millisecond, func(c *keyed.Config) { c.Keys = values / 2 }, &own)
		w.nextWindow()
		w.ask(0, 0, 1, 1) // so that windows are known
		own.index, own.until = int64(w.hub.Now())/int64(w.params.Window), monotonic.Process.Now()+int64(5*time.Second)
		before := w.hub.Seen().Messages
		w.lines[0].SetCut(true)
		var sum int64
		for range 4 {
			for key := 1; key <= values; key++ {
				sum += w.ask(0, key, 1, 2)
			}
		}
		// The value that was asked for first, and has units of the coordinator, has a place too.
		if sum < (values/2-1)*3 || sum > values/2*3 {
			t.Errorf("%d units without the coordinator, want 3 of each that has a place", sum)
		}
		for key := 1; key <= values; key++ {
			if got := w.of(key); got > 3 {
				t.Errorf("%d units of value %d, more than the slice", got, key)
			}
		}
		if w.hub.Seen().Messages != before {
			t.Errorf("%d messages arrived", w.hub.Seen().Messages-before)
		}
		own.until = monotonic.Process.Now()
		if got := w.ask(0, 1, 1, 1); got != 0 {
			t.Errorf("%d units of a slice when its window may be over", got)
		}
	})
}

// TestWindowsOfAnotherLength begin with nothing in hand.
func TestWindowsOfAnotherLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, params(50, 10*time.Second), 10*time.Millisecond, plain)
		w.nextWindow()
		for range 5 {
			w.ask(0, 1, 1, 4)
		}
		w.params = params(50, 20*time.Second)
		w.regions[0].Reconfigure(keyed.Config{Params: w.params, Patience: 100 * time.Millisecond})
		if got := w.ask(0, 1, 1, 1); got != 0 {
			t.Errorf("%d units, while the coordinator's window has another length", got)
		}
		w.nextWindow()
		time.Sleep(2 * time.Second) // for what it refused last
		if got := w.ask(0, 1, 1, 1); got != 1 {
			t.Error("nothing is granted in a window of the new length")
		}
		w.requireWithin()
	})
}

func TestConfigIsChecked(t *testing.T) {
	good := keyed.Config{ID: "x", Member: "a", Params: params(1, time.Second)}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*keyed.Config){
		"id":       func(c *keyed.Config) { c.ID = "" },
		"member":   func(c *keyed.Config) { c.Member = "x" },
		"timeout":  func(c *keyed.Config) { c.Timeout = -1 },
		"patience": func(c *keyed.Config) { c.Patience = -1 },
		"probe":    func(c *keyed.Config) { c.Probe = -1 },
		"keys":     func(c *keyed.Config) { c.Keys = -1 },
		"params":   func(c *keyed.Config) { c.Params.Limit = 0 },
	} {
		c := good
		if change(&c); c.Validate() == nil {
			t.Errorf("%s is not checked", name)
		}
	}
}

// TestAValueHasTheLimitOfItsOverride in all that a region says of it, and over all regions.
func TestAValueHasTheLimitOfItsOverride(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := params(5, 10*time.Second)
		p.Keys, p.Overrides = 100, []ledger.Override{{Hash: "k1", Limit: 50}, {Hash: "k2", Limit: 2}}
		own := &slice{}
		w := newTown(t, p, 10*time.Millisecond, plain, own)
		w.nextWindow()
		apply := func(key string, op limiter.Op, least, want int64) limiter.Result {
			t.Helper()
			res, err := w.regions[0].Apply(t.Context(), store.Key{Hash: key}, limiter.Params{Rates: []limiter.Rate{{Limit: 5, Window: p.Window}}},
				limiter.Command{Op: op, Min: least, Want: want})
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		for key, limit := range map[string]int64{"k1": 50, "k2": 2, "k3": 5} {
			if res := apply(key, limiter.Peek, 1, 100); res.Granted != limit || res.Limit != limit {
				t.Errorf("%s: a look says %+v, want a limit of %d", key, res, limit)
			}
			if res := apply(key, limiter.Take, limit+1, limit+1); res.Reason != limiter.TooLarge || res.Limit != limit {
				t.Errorf("%s: %+v, want that more than %d is too large", key, res, limit)
			}
			if res := apply(key, limiter.Take, limit, limit); res.Granted != limit || res.Limit != limit || res.Windows.Open[0].Limit != limit {
				t.Errorf("%s: %+v, want all %d units", key, res, limit)
			}
		}
		own.index, own.units, own.until = int64(w.hub.Now())/int64(p.Window)+1, 1, monotonic.Process.Now()+int64(time.Hour)
		w.nextWindow()
		if res := apply("k1", limiter.Take, 1, 1); res.Granted != 1 || res.Limit != 50 || res.Windows.Open[0].Limit != 50 {
			t.Errorf("a unit of the slice: %+v, want a limit of 50", res)
		}
	})
}
