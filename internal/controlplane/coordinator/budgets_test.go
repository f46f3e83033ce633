package coordinator

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/bindings"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// shared is Budgets with that many units of each second for every budget. It outlives
// terms.
type shared struct {
	limit int64
	asked chan struct{} // blocks Apply until it is read from; nil: nothing does
	ahead time.Duration // of the store's clock; negative: behind

	mu       sync.Mutex
	granted  map[string]map[int64]int64 // by budget and window
	returned int64
	params   limiter.Params  // of the last command
	floor    limiter.Instant // of the last command
	back     limiter.Windows // of the last return
}

func newShared(limit int64) *shared {
	return &shared{limit: limit, granted: map[string]map[int64]int64{}}
}

func (s *shared) make(budget.Counts, func(types.NamespacedName), bool) Budgets { return s }

func (s *shared) Run(ctx context.Context) { <-ctx.Done() }

func (s *shared) Observe(_, name string) budget.Observation {
	return budget.Observation{Generation: int64(len(name))}
}

func (s *shared) Apply(
	_ context.Context, _ string, of policy.BudgetRef, _ store.Key, p limiter.Params, c limiter.Command,
) (limiter.Result, error) {
	if s.asked != nil {
		s.asked <- struct{}{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.params, s.floor = p, c.Floor
	now := limiter.Instant(time.Now().Add(s.ahead).UnixMicro())
	open := p.Rates[0].WindowAt(now)
	if s.granted[of.ID] == nil {
		s.granted[of.ID] = map[int64]int64{}
	}
	used := s.granted[of.ID]
	res := limiter.Result{Now: now, ExpiresIn: open.End().Sub(now), Limit: p.Rates[0].Limit}
	if c.Op == limiter.Return {
		s.back = c.Windows
		if c.Windows.Open[0].Index >= 0 {
			s.returned += c.Want
			used[c.Windows.Open[0].Index] -= c.Want
		}
		return res, nil
	}
	res.Granted = min(c.Want, s.limit-used[open.Index])
	if res.Granted < c.Min {
		res.Granted, res.Reason, res.RetryAfter = 0, limiter.Exhausted, res.ExpiresIn
	}
	if c.Op == limiter.Take {
		used[open.Index] += res.Granted
	}
	res.Remaining = s.limit - used[open.Index]
	for _, r := range p.Rates { // the first binds
		res.Windows.Open[res.Windows.N] = r.WindowAt(now)
		res.Windows.N++
	}
	return res, nil
}

// federated returns p with its limit drawing from the budget of that id.
func federated(p policy.Policy, id string) policy.Policy {
	p.Limits = []policy.Limit{p.Limits[0]}
	p.Limits[0].Budget = &policy.BudgetRef{ID: id, Name: "world"}
	return p
}

// withRate has the limit of p draw from a budget with a further rate.
func withRate(p policy.Policy, limit int64, window limiter.Micros) policy.Policy {
	p.Limits[0].Rates = append(slices.Clone(p.Limits[0].Rates), limiter.Rate{Limit: limit, Window: window})
	return p
}

// A caller is a term with a session, without a server.
type caller struct {
	t    *testing.T
	term *term
	s    *session
	p    policy.Policy
}

func newCaller(t *testing.T, terms *memoryTerms, b *shared, p policy.Policy) *caller {
	t.Helper()
	begun, err := terms.Begin(t.Context(), leads)
	if err != nil {
		t.Fatal(err)
	}
	c := New(Config{Terms: terms, Budgets: b.make})
	k := &caller{t: t, term: newTerm(c, begun, logr.Discard())}
	k.s = newSession(pod("shop", "web-0"), &fleetpb.Hello{BootNonce: "1"}, func(error) {})
	close(k.s.known)
	k.edit(p)
	return k
}

// edit publishes p.
func (k *caller) edit(p policy.Policy) {
	k.t.Helper()
	config, err := newConfig(policy.Snapshot{Cluster: "test", Policies: []policy.Policy{p}}, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	k.p, k.s.serves, k.s.sent = p, config, true
}

// end ends the term in good order.
func (k *caller) end() {
	k.term.stepDownForTest()
	k.term.tasks.ShutDown()
}

// send sends a command by the generation that is published.
func (k *caller) send(r *fleetpb.LeaseRequest) *fleetpb.LeaseReply {
	k.t.Helper()
	return k.sendOf("", r)
}

// sendOf sends a command of a value of the key, "" for a limit without one.
func (k *caller) sendOf(value string, r *fleetpb.LeaseRequest) *fleetpb.LeaseReply {
	k.t.Helper()
	rate := k.p.Limits[0].Rates[0]
	r.Id, r.Key, r.Generation = 1, &fleetpb.Key{Namespace: "shop", Policy: "checkout", Limit: "all"}, k.p.Generation
	if value != "" {
		r.Key.Hash = store.HashValue(value)
	}
	r.Rates = []*fleetpb.Rate{{Limit: rate.Limit, WindowMicros: int64(rate.Window)}}
	limit, err := k.s.limit(r)
	reply, _ := k.term.lease(k.t.Context(), limit, err, r)
	if reply.GetError() != "" {
		k.t.Fatal(reply.GetError())
	}
	return reply
}

func (k *caller) take(n int64) *fleetpb.LeaseReply {
	k.t.Helper()
	return k.send(&fleetpb.LeaseRequest{Op: int32(limiter.Take), Min: 1, Want: n})
}

// giveBack returns that many units of a reply.
func (k *caller) giveBack(n int64, of *fleetpb.LeaseReply) {
	k.t.Helper()
	k.send(&fleetpb.LeaseRequest{Op: int32(limiter.Return), Want: n, Windows: of.GetWindows(), AtMicros: of.GetNowMicros()})
}

// next waits until the next second has begun.
func next() { time.Sleep(time.Second - time.Duration(time.Now().Nanosecond())) }

// TestAnEditOfTheScopeAdmitsOnce edits the scope at random moments, or has the budget be created again with
// windows of other lengths, with changes of the leader in between: while a window is open that one granted from, the other does not grant.
// The budget's clock is another one, and no number of a window is served by both, except for
// the windows that a leader before drew from.
func TestAnEditOfTheScopeAdmitsOnce(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			lengths := []limiter.Micros{limiter.Second, limiter.Second, 3 * limiter.Second}
			fleet := limited("shop", 1, 20, lengths[rng.IntN(len(lengths))])
			world := federated(limited("shop", 1, 50, limiter.Second), "acme/checkout")
			if rng.IntN(2) == 0 {
				world = withRate(world, 1000, 3*limiter.Second)
			}
			again := federated(limited("shop", 1, 50, lengths[rng.IntN(len(lengths))]), "acme/checkout")
			if rng.IntN(2) == 0 {
				again = withRate(again, 1000, 5*limiter.Second)
			}
			b, terms := newShared(50), &memoryTerms{}
			b.ahead = [...]time.Duration{0, time.Duration(rng.Int64N(int64(5*time.Second))) - 5*time.Second/2}[seed%2]
			k := newCaller(t, terms, b, fleet)
			defer func() { k.end() }()
			stored := map[limiter.OpenWindow]int64{}   // granted by the store
			during := map[int64]int64{}                // drawn from the budget, by the store's second
			numbers := map[limiter.OpenWindow]string{} // by whom windows were served, as holders count them
			for generation := int64(2); generation < 12; generation++ {
				for range rng.IntN(20) {
					time.Sleep(time.Duration(rng.Int64N(int64(200 * time.Millisecond))))
					before := b.total() - b.returned
					reply := k.take(1 + rng.Int64N(10))
					drew := b.total() - b.returned - before
					if drew != 0 && drew != reply.GetGranted() {
						t.Fatalf("seed %d: granted %d, and the budget %d of them", seed, reply.GetGranted(), drew)
					}
					back := int64(0)
					if rng.IntN(4) == 0 && reply.GetGranted() > 0 {
						back = 1
						k.giveBack(back, reply)
					}
					now := limiter.Instant(time.Now().UnixMicro())
					open := fleet.Limits[0].Rates[0].WindowAt(now)
					switch second := int64(now) / int64(limiter.Second); {
					case reply.GetGranted() == 0:
					case drew > 0 && stored[open] > 0:
						t.Fatalf("seed %d: the budget grants in an open window, where the store granted %d", seed, stored[open])
					case drew > 0:
						during[second] += drew
					case during[second] > 0:
						t.Fatalf("seed %d: the store grants while a second is open in which the budget granted %d", seed, during[second])
					default:
						if stored[open] += reply.GetGranted() - back; stored[open] > open.Limit {
							t.Fatalf("seed %d: %d units of %+v are of the store", seed, stored[open], open)
						}
					}
					if reply.GetGranted() > 0 {
						by := map[bool]string{true: "budget", false: "store"}[drew > 0]
						for _, named := range reply.GetWindows() {
							number := limiter.OpenWindow{Rate: limiter.Rate{Window: limiter.Micros(named.GetRate().GetWindowMicros())}, Index: named.GetIndex()}
							if other := numbers[number]; other != "" && other != by {
								t.Fatalf("seed %d: window %d of %dµs is served by the %s and by the %s, whose clock is %s ahead", seed, number.Index, number.Window, other, by, b.ahead)
							}
							numbers[number] = by
						}
					}
				}
				if rng.IntN(3) == 0 {
					k.end()
					k = newCaller(t, terms, b, k.p)
					maps.DeleteFunc(numbers, func(_ limiter.OpenWindow, by string) bool { return by == "budget" && b.ahead > 0 })
				}
				p := [...]policy.Policy{fleet, world, again}[rng.IntN(3)]
				p.Generation = generation
				k.edit(p)
			}
		})
	}
}

// TestNoWindowCountsTwiceAfterAnEditOfTheScope: the budget's clock is behind, or ahead, and
// the audit, which knows windows by their numbers, finds none with the units of both.
func TestNoWindowCountsTwiceAfterAnEditOfTheScope(t *testing.T) {
	for _, ahead := range []time.Duration{-2500 * time.Millisecond, -300 * time.Millisecond, 0, 300 * time.Millisecond, 2500 * time.Millisecond} {
		for _, toBudget := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v ahead, to the budget: %t", ahead, toBudget), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					before, after := limited("shop", 1, 10, limiter.Second), federated(limited("shop", 2, 10, limiter.Second), "acme/checkout")
					if !toBudget {
						before, after = after, before
						before.Generation, after.Generation = 1, 2
					}
					b := newShared(10)
					b.ahead = ahead
					k := newCaller(t, &memoryTerms{}, b, before)
					defer k.end()
					next()
					next()
					sums, granted := map[int64]int64{}, 0
					for step := range 40 {
						if step == 2 {
							k.edit(after)
						}
						if reply := k.take(10); reply.GetGranted() > 0 {
							sums[reply.GetWindows()[0].GetIndex()] += reply.GetGranted()
							granted++
						} else if reply.GetRetryAfterMicros() <= 0 {
							t.Errorf("step %d: %v, want it to say when to ask again", step, reply)
						}
						time.Sleep(150 * time.Millisecond)
					}
					if granted < 3 {
						t.Errorf("%d of 6 seconds granted anything", granted)
					}
					if f := audited(t, after, sums); f.Verdict == audit.Exceeded {
						t.Errorf("sums %v: exceeded by %+v", sums, f.Overshoot)
					}
					for index, n := range sums {
						if n > 10 {
							t.Errorf("window %d was granted %d of 10", index, n)
						}
					}
				})
			})
		}
	}
}

// audited returns what the audit makes of a limit of the policy when it admitted that many units of each
// second.
func audited(t *testing.T, p policy.Policy, sums map[int64]int64) audit.Figures {
	t.Helper()
	accounting := newAccounting(time.Now().Add(-time.Minute))
	h := audit.NewHolder("web-0-uid", "1")
	config, err := newConfig(policy.Snapshot{Cluster: "test", Policies: []policy.Policy{p}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	accounting.enforce(h, config, nil, false)
	l := accounting.byName[types.NamespacedName{Namespace: "shop", Name: "checkout"}].limits["all"]
	for i := range 6 {
		now := time.Now().Add(time.Duration(i) * time.Second)
		var rows []audit.Row
		for index, n := range sums {
			rows = append(rows, audit.Row{Windows: windowsOfSecond(index), Final: i > 0, Admitted: n})
		}
		l.Report(h, audit.Report{Generation: p.Generation, Rows: rows}, now)
		l.Advance(now)
	}
	return l.Figures(time.Now().Add(10 * time.Second))
}

// windowsOfSecond returns the windows of a row of that second.
func windowsOfSecond(index int64) limiter.Windows {
	w := limiter.Windows{N: 1}
	w.Open[0] = limiter.OpenWindow{Rate: limiter.Rate{Limit: 10, Window: limiter.Second}, Index: index}
	return w
}

// total returns what all budgets granted, returns not taken off.
func (s *shared) total() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.returned
	for _, windows := range s.granted {
		for _, n := range windows {
			sum += n
		}
	}
	return sum
}

// TestTheBudgetServesUntilItsWindowEnds: an edit refuses nobody.
func TestTheBudgetServesUntilItsWindowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared(50)
		k := newCaller(t, &memoryTerms{}, b, federated(limited("shop", 1, 50, limiter.Second), "acme/checkout"))
		defer k.end()
		next()
		k.take(5)
		k.edit(limited("shop", 2, 20, limiter.Second))
		if reply := k.take(5); reply.GetGranted() != 5 || b.total() != 10 {
			t.Errorf("in the window of the edit: %v, %d units of the budget", reply, b.total())
		}
		next()
		if reply := k.take(50); reply.GetGranted() != 20 || b.total() != 10 {
			t.Errorf("in the next window: %v, %d units of the budget", reply, b.total())
		}
		k.edit(federated(limited("shop", 3, 50, limiter.Second), "acme/checkout"))
		if reply := k.take(5); reply.GetGranted() != 0 || reply.GetRetryAfterMicros() <= 0 {
			t.Errorf("the store's window is used up: %v", reply)
		}
		next()
		if reply := k.take(50); reply.GetGranted() != 50 {
			t.Errorf("after it: %v", reply)
		}
	})
}

// TestANewLeaderDoesNotGrantWhatABudgetDid: the sentinel is handed over, but not which budget it
// is for.
func TestANewLeaderDoesNotGrantWhatABudgetDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, terms := newShared(50), &memoryTerms{}
		k := newCaller(t, terms, b, federated(limited("shop", 1, 50, limiter.Second), "acme/checkout"))
		next()
		time.Sleep(100 * time.Millisecond)
		k.take(5)
		k.end()
		k = newCaller(t, terms, b, limited("shop", 2, 20, limiter.Second))
		defer k.end()
		if reply := k.take(5); reply.GetGranted() != 0 || reply.GetReason() != int32(limiter.Exhausted) || reply.GetRetryAfterMicros() <= 0 || reply.GetNowMicros() != time.Now().UnixMicro() {
			t.Errorf("in the window of the budget: %v", reply)
		}
	})
}

// TestUnitsGoBackWhereTheyCameFrom: in the window in which the scope is edited nobody
// knows, so they are forfeited.
func TestUnitsGoBackWhereTheyCameFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared(50)
		k := newCaller(t, &memoryTerms{}, b, federated(limited("shop", 1, 50, limiter.Second), "acme/checkout"))
		defer k.end()
		next()
		k.giveBack(2, k.take(5))
		if b.returned != 0 {
			t.Errorf("%d units of the first window were given back", b.returned)
		}
		next()
		k.giveBack(2, k.take(5))
		if b.returned != 2 {
			t.Errorf("%d units were given back, want 2", b.returned)
		}
		last := k.take(5)
		k.edit(federated(limited("shop", 2, 50, limiter.Second), "acme/search"))
		k.giveBack(2, last)
		k.take(5)
		k.giveBack(2, last)
		if b.returned != 2 {
			t.Errorf("%d units went to another budget", b.returned-2)
		}
		next()
		k.edit(limited("shop", 3, 50, limiter.Second))
		next()
		stored := k.take(5)
		k.edit(federated(limited("shop", 4, 50, limiter.Second), "acme/search"))
		k.giveBack(5, stored)
		if b.returned != 2 {
			t.Errorf("%d units of the store went to a budget", b.returned-2)
		}
		if reply := k.take(100); reply.GetGranted() != 50 {
			t.Errorf("got %v, want all of the store's window: what came back is granted again", reply)
		}
	})
}

// TestUnitsGoBackToEachRate but to the window in which the limit began to draw from it.
func TestUnitsGoBackToEachRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared(50)
		k := newCaller(t, &memoryTerms{}, b, withRate(federated(limited("shop", 1, 50, limiter.Second), "acme/checkout"), 500, 10*limiter.Second))
		defer k.end()
		time.Sleep(10*time.Second - time.Duration(time.Now().UnixNano()%int64(10*time.Second)))
		k.giveBack(2, k.take(5))
		if b.back.N != 0 {
			t.Errorf("units of the first windows were given back to %+v", b.back)
		}
		next()
		k.giveBack(2, k.take(5))
		if b.returned != 2 || b.back.N != 2 || b.back.Open[1].Index != bindings.NoWindow {
			t.Errorf("%d units went back to %+v, want 2 to the second alone", b.returned, b.back)
		}
		time.Sleep(10 * time.Second)
		k.giveBack(2, k.take(5))
		if b.returned != 4 || b.back.Open[1] != (limiter.Rate{Limit: 500, Window: 10 * limiter.Second}).WindowAt(limiter.Instant(time.Now().UnixMicro())) {
			t.Errorf("%d units went back to %+v, want 2 more to both", b.returned, b.back)
		}
	})
}

// TestTheSentinelIsAsLongAsTheLongestRate: until then the store grants nothing.
func TestTheSentinelIsAsLongAsTheLongestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared(50)
		k := newCaller(t, &memoryTerms{}, b, withRate(federated(limited("shop", 1, 50, limiter.Second), "acme/checkout"), 500, 10*limiter.Second))
		defer k.end()
		time.Sleep(10*time.Second - time.Duration(time.Now().UnixNano()%int64(10*time.Second)))
		k.take(5)
		k.edit(limited("shop", 2, 20, limiter.Second))
		for second := range 10 {
			if reply := k.take(5); reply.GetGranted() != 5 || b.total() != int64(10+5*second) || len(b.params.Rates) != 2 {
				t.Errorf("second %d: %v, %d units of the budget by rates %v", second, reply, b.total(), b.params.Rates)
			}
			next()
		}
		if reply := k.take(50); reply.GetGranted() != 20 || b.total() != 55 {
			t.Errorf("after the longest window: %v, %d units of the budget", reply, b.total())
		}
	})
}

func TestAnOlderStoreIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := federated(limited("shop", 1, 50, limiter.Second), "acme/checkout")
		next()
		p.Since = limiter.Instant(time.Now().UnixMicro()).Add(limiter.Second / 2) // it was another until then
		b := newShared(50)
		k := newCaller(t, &memoryTerms{}, b, p)
		defer k.end()
		time.Sleep(700 * time.Millisecond)
		if reply := k.take(5); reply.GetGranted() != 0 || b.total() != 0 {
			t.Errorf("in the window of the move: %v", reply)
		}
		next()
		if reply := k.take(5); reply.GetGranted() != 5 {
			t.Errorf("after it: %v", reply)
		}
	})
}

func TestABudgetIsAskedByItsOwnRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared(50)
		p := federated(limited("shop", 3, 50, limiter.Second), "acme/checkout")
		p.Limits[0].Fairness = &policy.Fairness{Tenant: policy.KeyPart{Type: policy.HeaderKey, Header: "x-tenant"}, DefaultWeight: 2}
		k := newCaller(t, &memoryTerms{}, b, p)
		defer k.end()
		k.p.Limits[0].Rates = []limiter.Rate{{Limit: 7, Window: limiter.Second}} // as the holder knows it
		reply := k.take(5)
		if reply.GetGranted() != 5 || b.params.Rates[0].Limit != 50 || b.params.Fairness.Default != 2 || b.params.Generation != 3 {
			t.Errorf("got %v by %+v, want what was published to count", reply, b.params)
		}
	})
}

func TestAnotherClusterIsWaitedForAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newShared(50)
		slow.asked = make(chan struct{})
		here := limited("shop", 1, 10, limiter.Second)
		there := federated(limited("shop", 1, 50, limiter.Second), "acme/checkout")
		there.Name = "world"
		l := lead(t, &memoryTerms{}, publishing(here, there), func(c *Config) { c.Budgets = slow.make })
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		time.Sleep(time.Second)
		s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Lease{Lease: &fleetpb.LeaseRequest{
			Id: 100, Key: &fleetpb.Key{Namespace: "shop", Policy: "world", Limit: "all"}, Generation: 1, Min: 1, Want: 1,
		}}})
		if reply := s.lease(here, here.Limits[0]); reply.GetId() == 100 || reply.GetGranted() != 1 {
			t.Errorf("got %v, want the limit of this cluster first", reply)
		}
		<-slow.asked
		if reply := s.recv().GetLease(); reply.GetId() != 100 || reply.GetGranted() != 1 {
			t.Errorf("got %v, want a unit of the budget", reply)
		}
	})
}

// A budget has a clock of its own: it neither sees a holder's floor, nor says what the
// store's clock shows.
func TestABudgetHasAClockOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := federated(limited("shop", 1, 50, limiter.Second), "acme/checkout")
		budget := newShared(50)
		l := lead(t, &memoryTerms{}, publishing(p), func(c *Config) { c.Budgets = budget.make })
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		time.Sleep(time.Second)
		reply := s.lease(p, p.Limits[0], func(r *fleetpb.LeaseRequest) { r.FloorMicros = time.Now().UnixMicro() })
		if reply.GetGranted() != 1 || reply.GetClockMicros() != 0 {
			t.Errorf("reply = %v, want a unit, and no clock", reply)
		}
		budget.mu.Lock()
		defer budget.mu.Unlock()
		if budget.floor != 0 {
			t.Errorf("the budget was given the floor %d", budget.floor)
		}
	})
}

func TestABudgetGrantsNothingOutsideTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := true
		p := federated(limited("shop", 1, 50, limiter.Second), "acme/checkout")
		l := lead(t, &memoryTerms{}, publishing(p), func(c *Config) {
			c.Budgets, c.Leadership = newShared(50).make, &lock{held: &held}
		})
		defer l.end()
		if got := l.ObserveBudget("shop", "world").Generation; got == 0 {
			t.Error("the budget is not observed")
		}
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		for _, held = range []bool{true, false} {
			time.Sleep(time.Second)
			if reply := s.lease(p, p.Limits[0]); (reply.GetGranted() == 1) != held || (reply.GetError() == "") != held {
				t.Errorf("held %t: %v", held, reply)
			}
		}
	})
}

func TestWithoutBudgetsALimitOfOneIsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := federated(limited("shop", 1, 50, limiter.Second), "acme/checkout")
		l := lead(t, &memoryTerms{}, publishing(p))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		time.Sleep(time.Second)
		if reply := s.lease(p, p.Limits[0]); reply.GetError() == "" || reply.GetDefect() {
			t.Errorf("got %v, want an outage", reply)
		}
	})
}

// TestWhatIsRefusedGoesBack as it was taken.
func TestWhatIsRefusedGoesBack(t *testing.T) {
	took := limiter.Command{Op: limiter.Take, Want: 9, Tenant: "gold"}
	granted := limiter.Result{Granted: 7, Now: 1_000, Windows: windowsOfSecond(4)}
	var back []limiter.Command
	got, err := refuse(took, granted, 1_500, func(c limiter.Command) (limiter.Result, error) {
		back = append(back, c)
		return limiter.Result{}, nil
	})
	if want := (limiter.Result{Reason: limiter.Exhausted, RetryAfter: 500, Now: 1_000}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	want := limiter.Command{Op: limiter.Return, Want: 7, Tenant: "gold", Windows: granted.Windows, At: granted.Now}
	if diff := cmp.Diff([]limiter.Command{want}, back); diff != "" {
		t.Errorf("given back (-want +got):\n%s", diff)
	}
}
