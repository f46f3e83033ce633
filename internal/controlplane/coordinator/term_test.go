package coordinator

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/records"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store/memory"
)

// A planned change of leader in the middle of a window loses nothing and grants
// nothing twice.
func TestAPlannedHandOverLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window = 60 * limiter.Second
		p := limited("shop", 1, 10, window)
		terms := &memoryTerms{}
		var granted int64
		for i := range 3 {
			l := lead(t, terms, publishing(p))
			s := l.connect(pod("shop", "web-0"), "1")
			s.config()
			if i == 0 {
				sleepToWindow(window, s)
			}
			reply := s.lease(p, p.Limits[0], want(4))
			granted += reply.GetGranted()
			if want := int64([]int{4, 4, 2}[i]); reply.GetGranted() != want || reply.GetTerm() != uint64(i+1) {
				t.Errorf("term %d: reply = %v, want %d units", i+1, reply, want)
			}
			time.Sleep(time.Second)
			l.end()
			s.close()
		}
	})
}

// TestSidecarsThatStayDoNotDelayAHandOver: they hear that the leader ends, and keep their streams.
func TestSidecarsThatStayDoNotDelayAHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		var all []*sidecar
		for i := range 10 * partAtOnce {
			s := l.connect(pod("shop", fmt.Sprint("web-", i)), "1")
			s.config()
			all = append(all, s)
		}
		began := time.Now()
		l.end()
		if took := time.Since(began); took > goodbyeTime+2*partStep {
			t.Errorf("the hand-over took %s", took)
		}
		for _, s := range all {
			s.close()
		}
	})
}

// TestStreamsThatDoNotEndDelayNoHandOver: the next leader waits for the lock, which is released when
// Start returns, and meanwhile no sidecar is granted anything.
func TestStreamsThatDoNotEndDelayNoHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		s := l.connect(pod("shop", "web-0"), "1")
		s.config()
		l.slow.Store(&slowness{turn: make(chan struct{}, 1), each: 5 * time.Second}) // what is sent comes late
		began := time.Now()
		l.stop()
		if err := <-l.stopped; err != nil {
			t.Errorf("Start: %v", err)
		}
		if took := time.Since(began); took > goodbyeTime {
			t.Errorf("the lock is released after %s", took)
		}
		if got := l.terms.left.Stopped; got == 0 {
			t.Error("the lock is released, and nothing is handed over")
		}
		l.Close()
		l.Close() // again
		if _, leads := l.Now(); leads {
			t.Error("it leads after Close")
		}
		s.close()
	})
}

// TestALeaderServesWhileItWaitsForPromises: one sidecar makes none, and another comes meanwhile.
func TestALeaderServesWhileItWaitsForPromises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 1, 10, 60*limiter.Second)
		l := lead(t, &memoryTerms{}, publishing(p))
		s := l.promising("web-0")
		s.config()
		sleepToWindow(60*limiter.Second, s)
		began := time.Now()
		l.stop()
		ask := func(s *sidecar, wait time.Duration) {
			t.Helper()
			if got, want := s.asked(), time.Now().Add(wait+goodbyeTime).UnixMicro(); got != want {
				t.Errorf("asked to promise until %d, want %d", got, want)
			}
		}
		ask(s, promiseTimeOf(1))
		time.Sleep(promiseTimeOf(1))
		ask(s, promiseAgain)
		late := l.promising("web-1")
		ask(late, promiseAgain)
		time.Sleep(promiseAgain - time.Millisecond)
		if reply := s.lease(p, p.Limits[0]); reply.GetGranted() != 1 {
			t.Errorf("reply = %v, want a unit", reply)
		}
		present := l.present.Load()
		if err := <-l.stopped; err != nil {
			t.Errorf("Start: %v", err)
		}
		longest := promiseTimeOf(1) + promiseAgain
		if took := time.Since(began); took < longest || took > longest+goodbyeTime {
			t.Errorf("it stopped after %s", took)
		}
		ends := limiter.Instant(began.Add(longest + goodbyeTime).UnixMicro())
		if present.promises.Over(ends-1) || !present.promises.Over(ends) {
			t.Error("it serves longer than sidecars promise")
		}
		l.Close()
		s.close()
		late.close()
	})
}

// TestLargeFleetsHaveMoreTimeToPromise, within bounds: windows that begin meanwhile are lost if nobody leads next.
func TestLargeFleetsHaveMoreTimeToPromise(t *testing.T) {
	for n, want := range map[int]time.Duration{
		0: 250 * time.Millisecond, 1500: 850 * time.Millisecond, 4375: 2 * time.Second, 100_000: 2 * time.Second,
	} {
		if got := promiseTimeOf(n); got != want {
			t.Errorf("%d holders have %s, want %s", n, got, want)
		}
	}
}

// TestALeaderWaitsForNobodyWhoHasLeft: a sidecar that makes no promise leaves before it is asked, or afterwards.
func TestALeaderWaitsForNobodyWhoHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		s, early := l.promising("web-0"), l.promising("web-1")
		synctest.Wait()
		present := l.present.Load()
		gone := present.sessions.of("web-1-uid")
		early.close()
		time.Sleep(time.Second)
		l.stop()
		synctest.Wait()
		present.askLast(gone) // who was still listed
		leaves := time.Now().Add(promiseTime / 2)
		time.Sleep(time.Until(leaves))
		s.close()
		if err := <-l.stopped; err != nil {
			t.Errorf("Start: %v", err)
		}
		if late := time.Since(leaves); late > goodbyeTime {
			t.Errorf("it stopped %s after the last sidecar left", late)
		}
		l.Close()
	})
}

// TestALeaderThatWasSuspendedAsksForNoMore: the promises that it waited for are over.
func TestALeaderThatWasSuspendedAsksForNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		s := l.promising("web-0") // which makes no promise
		synctest.Wait()
		present := l.present.Load()
		l.stop()
		until := limiter.Instant(s.asked())
		present.clock.Raise(until)
		if err := <-l.stopped; err != nil {
			t.Errorf("Start: %v", err)
		}
		if !present.promises.Over(until) {
			t.Error("it serves instants that nobody has promised")
		}
		l.Close()
		s.close()
	})
}

// promising opens a session of a sidecar that promises what it is asked for.
func (l *leader) promising(name string) *sidecar {
	l.t.Helper()
	return l.introduce(pod("shop", name), func(h *fleetpb.Hello) { h.Promises = true })
}

// asked returns until when the sidecar is asked to promise next.
func (s *sidecar) asked() int64 {
	for {
		if r := s.recv().GetPromise(); r != nil {
			return r.GetUntilMicros()
		}
	}
}

// TestALeaderGrantsNothingOnceThePromisesEnd, if it was suspended until then.
func TestALeaderGrantsNothingOnceThePromisesEnd(t *testing.T) {
	withOne(t, limited("shop", 1, 10, limiter.Second), func(t *testing.T, l *leader, s *sidecar) {
		p, present := l.policies.all[0], l.present.Load()
		ends := time.Now().Add(time.Second)
		present.promises.Ask(limiter.Instant(ends.UnixMicro()))
		time.Sleep(time.Second - time.Microsecond)
		if reply := s.lease(p, p.Limits[0]); reply.GetGranted() != 1 {
			t.Errorf("before: %v, want a unit", reply)
		}
		time.Sleep(time.Microsecond)
		go func() {
			time.Sleep(time.Second)
			present.sessions.part("over")
		}()
		s.send(s.leaseRequest(p, p.Limits[0]))
		if m := s.recv(); m.GetGoodbye() == nil {
			t.Errorf("afterwards: %v, want no answer, and good-bye", m)
		}
	})
}

// sleepToWindow waits until a window begins, while the sidecars stay awake.
func sleepToWindow(length limiter.Micros, awake ...*sidecar) {
	window := time.Duration(length) * time.Microsecond
	for left := window - time.Duration(time.Now().UnixMicro()%int64(length))*time.Microsecond; left > 0; {
		nap := left
		if len(awake) > 0 {
			nap = min(left, 5*time.Second)
		}
		time.Sleep(nap)
		left -= nap
		for _, s := range awake {
			s.report()
		}
	}
}

func TestASealedLeaderGrantsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 1, 10, limiter.Second)
		l := lead(t, &memoryTerms{}, publishing(p))
		s := l.connect(pod("shop", "web-0"), "1")
		s.config()
		time.Sleep(time.Second)
		l.present.Load().store.Seal()
		if reply := s.lease(p, p.Limits[0]); reply.GetGranted() != 0 || reply.GetError() == "" {
			t.Errorf("reply = %v, want an error", reply)
		}
		l.end()
		if m := s.recv(); m.GetGoodbye().GetReason() == "" {
			t.Errorf("got %v, want good-bye and why", m)
		}
		s.close()
	})
}

// Over random terms that end in order or by a crash, no window is granted more than
// its limit, and a window that began in a term and was not cut by a crash can be used up.
func TestNoChangeOfLeaderGrantsTwice(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 0))
				terms := &memoryTerms{}
				p := limited("shop", 1, 5+rng.Int64N(20), limiter.Second)
				granted := map[int64]int64{} // by window
				for range 12 {
					changeLeader(t, rng, terms, p, granted)
				}
				for index, sum := range granted {
					if sum > p.Limits[0].Rates[0].Limit {
						t.Errorf("window %d was granted %d of %d", index, sum, p.Limits[0].Rates[0].Limit)
					}
				}
			})
		})
	}
}

// changeLeader leads one term: it grants at random for a while and ends in order
// or not.
func changeLeader(t *testing.T, rng *rand.Rand, terms *memoryTerms, p policy.Policy, granted map[int64]int64) {
	begun, err := terms.Begin(t.Context(), leads)
	if err != nil {
		t.Fatal(err)
	}
	c := New(Config{Terms: terms})
	term := newTerm(c, begun, logr.Discard())
	defer term.tasks.ShutDown()
	config, err := newConfig(policy.Snapshot{Cluster: "test", Policies: []policy.Policy{p}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(pod("shop", "web-0"), &fleetpb.Hello{BootNonce: "1"}, func(error) {})
	s.serve(config, true)
	began := term.clock.Now()
	most := p.Limits[0].Rates[0].Limit
	for range rng.IntN(30) {
		time.Sleep(time.Duration(rng.Int64N(int64(300 * time.Millisecond))))
		request := &fleetpb.LeaseRequest{
			Id: 1, Key: &fleetpb.Key{Namespace: "shop", Policy: "checkout", Limit: "all"}, Generation: 1,
			Rates: []*fleetpb.Rate{{Limit: most, WindowMicros: int64(limiter.Second)}}, Min: 1, Want: 1 + rng.Int64N(most),
		}
		limit, err := s.limit(request)
		reply, _ := term.lease(t.Context(), limit, err, request)
		if reply.GetError() != "" {
			t.Fatal(reply.GetError())
		}
		if reply.GetGranted() > 0 {
			granted[reply.GetWindows()[0].GetIndex()] += reply.GetGranted()
		}
		window := limiter.OpenWindow{Rate: limiter.Rate{Limit: most, Window: limiter.Second}, Index: int64(term.clock.Now()) / int64(limiter.Second)}
		if reason := limiter.Reason(reply.GetReason()); reason == limiter.Amnesia && window.Start() > began {
			t.Errorf("a window that began when sidecars were back is refused: %v", reply)
		}
	}
	if rng.IntN(2) == 0 {
		term.stepDownForTest()
	}
	time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Second))))
}

// stepDownForTest is stepDown without a server.
func (t *term) stepDownForTest() {
	t.store.Seal()
	t.end()
}

func TestACrashCostsTheOpenWindowAndNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 1, 10, limiter.Second)
		terms := &memoryTerms{}
		if _, err := terms.Begin(t.Context(), leads); err != nil { // a leader that never ends its term
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		l := lead(t, terms, publishing(p))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		if reply := s.lease(p, p.Limits[0]); reply.GetReason() != int32(limiter.Amnesia) || reply.GetGranted() != 0 {
			t.Errorf("reply = %v, want nothing from the window of the crash", reply)
		}
		sleepToWindow(limiter.Second)
		if reply := s.lease(p, p.Limits[0], want(10)); reply.GetGranted() != 10 {
			t.Errorf("reply = %v, want all of the next window", reply)
		}
	})
}

// TestWhatIsGrantedIsOfThoseWhoAreBack: one that is not back when a window begins may
// begin it on its local share.
func TestWhatIsGrantedIsOfThoseWhoAreBack(t *testing.T) {
	tests := map[string]records.Handover{
		"after a crash":     {Term: 1},
		"after a hand-over": {Term: 1, Ledger: emptyLedger(t)},
	}
	for name, left := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(300 * time.Millisecond)
				p := limited("shop", 1, 10, limiter.Second)
				fleet := podsOf(pod("shop", "web-0"), pod("shop", "web-1"), pod("shop", "web-2"))
				l := lead(t, &memoryTerms{left: left}, publishing(p), fleet.watched)
				defer l.end()
				sleepToWindow(limiter.Second)
				a := l.comeBack(pod("shop", "web-0"), p, 3)
				defer a.close()
				requireGranted(t, "nobody was back when the window began", a, p, 0)
				sleepToWindow(limiter.Second)
				requireGranted(t, "one of three was back", a, p, 3)
				requireTold(t, l, p, 3, "web-0")
				b := l.comeBack(pod("shop", "web-1"), p, 3)
				requireGranted(t, "in a window that had begun", b, p, 0)
				sleepToWindow(limiter.Second)
				requireGranted(t, "two of three", a, p, 6)
				requireTold(t, l, p, 3, "web-0", "web-1")
				b.close()
				sleepToWindow(limiter.Second)
				b = l.comeBack(pod("shop", "web-1"), p, 3)
				defer b.close()
				sleepToWindow(limiter.Second)
				requireGranted(t, "who comes back twice brings one share", a, p, 6)
				c := l.comeBack(pod("shop", "web-3"), p, 0)
				defer c.close()
				sleepToWindow(limiter.Second)
				requireGranted(t, "a new one brings none", c, p, 6)
				requireTold(t, l, p, 5, "web-0", "web-1", "web-3") // 2/3 of the limit are theirs
				fleet.gone("web-2")
				time.Sleep(time.Second + podsInterval)
				sleepToWindow(limiter.Second)
				requireGranted(t, "the third is gone", c, p, 10)
				requireTold(t, l, p, 3, "web-0", "web-1", "web-3")
			})
		})
	}
}

// emptyLedger is that of a predecessor which stopped before the bubbles begin.
func emptyLedger(t *testing.T) []byte {
	t.Helper()
	ledger, _, err := memory.New(memory.Options{Clock: func() limiter.Instant { return 1 }}).Export(records.MaxHandover)
	if err != nil {
		t.Fatal(err)
	}
	return ledger
}

func TestOnlyTheFirstLeaderEverServesTheOpenWindow(t *testing.T) {
	tests := map[string]struct {
		left records.Handover
		seen time.Duration // since a holder of the lock was seen; 0 for never
		want limiter.Reason
	}{
		"nobody led before":                    {left: records.Handover{First: true}, want: limiter.Granted},
		"the record was deleted, not the lock": {left: records.Handover{First: true}, seen: time.Minute, want: limiter.Amnesia},
		"a term was recorded":                  {left: records.Handover{Term: 1}, want: limiter.Amnesia},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				held, predecessor := true, time.Time{}
				if tc.seen > 0 {
					predecessor = time.Now().Add(-tc.seen)
				}
				time.Sleep(300 * time.Millisecond)
				p := limited("shop", 1, 10, limiter.Second)
				l := lead(t, &memoryTerms{left: tc.left}, publishing(p), func(c *Config) {
					c.Leadership = &lock{held: &held, predecessor: predecessor}
				})
				defer l.end()
				s := l.connect(pod("shop", "web-0"), "1")
				defer s.close()
				s.config()
				if reply := s.lease(p, p.Limits[0]); reply.GetReason() != int32(tc.want) {
					t.Errorf("reply = %v, want reason %v", reply, tc.want)
				}
			})
		})
	}
}

func TestOfTwoLeadersTheEarlierWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terms := &memoryTerms{}
		p := limited("shop", 1, 10, limiter.Second)
		first, second := lead(t, terms, publishing(p)), lead(t, terms, publishing(p))
		first.end()
		if terms.left.Ledger != nil || terms.left.Term != 2 {
			t.Errorf("recorded %+v, want nothing of the first term", terms.left)
		}
		second.end()
		if terms.left.Ledger == nil || terms.left.Term != 2 {
			t.Errorf("recorded %+v, want the ledger of the second term", terms.left)
		}
	})
}

func TestADamagedLedgerCostsTheOpenWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terms := &memoryTerms{left: records.Handover{Term: 4, Ledger: []byte("not a ledger")}}
		p := limited("shop", 1, 10, limiter.Second)
		time.Sleep(300 * time.Millisecond)
		l := lead(t, terms, publishing(p))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		if reply := s.lease(p, p.Limits[0]); reply.GetReason() != int32(limiter.Amnesia) || reply.GetTerm() != 5 {
			t.Errorf("reply = %v, want amnesia in term 5", reply)
		}
	})
}

// A leader whose node's clock is behind goes on where its predecessor stopped.
func TestTheClockDoesNotStepBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead := time.Now().Add(time.Hour)
		stopped := lead(t, &memoryTerms{left: records.Handover{Term: 1, Stopped: limiter.Instant(ahead.UnixMicro())}}, publishing())
		defer stopped.end()
		crashed := lead(t, &memoryTerms{left: records.Handover{Term: 1}}, publishing(), func(c *Config) {
			c.Leadership = &lock{held: new(true), predecessor: ahead}
		})
		defer crashed.end()
		for name, l := range map[string]*leader{"stopped": stopped, "crashed": crashed} {
			if now := l.present.Load().clock.Now(); now < limiter.Instant(ahead.UnixMicro()) {
				t.Errorf("clock = %d, before that of a predecessor that %s", now, name)
			}
		}
	})
}

func TestStartFailsWhenItCannotListen(t *testing.T) {
	terms := &memoryTerms{}
	c := New(Config{Address: "256.0.0.1:0", Terms: terms})
	if err := c.Start(t.Context()); err == nil {
		t.Error("Start = nil, want an error")
	}
	if terms.left.Term != 0 {
		t.Errorf("term %d began although nobody can be served", terms.left.Term)
	}
}
