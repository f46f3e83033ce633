package explore_test

import (
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// A weakening takes one rule away from the production code, by what surrounds it,
// and shows that the promise needed it. The shortest history that breaks the promise has
// that many steps.
type weakening struct {
	rule  string // that is taken away
	steps int
	fleet *fleet
}

// stepFunc is limiter.Params.Step.
type stepFunc = func(limiter.Params, limiter.State, limiter.Instant, limiter.Command) (limiter.State, limiter.Result)

func weakenings() []weakening { return append(weakHolders(), weakStores()...) }

// weakHolders are weakenings of what holders do.
func weakHolders() []weakening {
	late := func(f *fleet) { f.late = true }
	weak := func(f *fleet, change ...func(*fleet)) *fleet {
		for _, c := range change {
			c(f)
		}
		return f
	}
	return []weakening{
		{"a credit is spent before its deadline only", 10, weak(fleetOf(whole, 2, late, fixed(2, whole)), func(f *fleet) {
			f.rules.spend = func(h account.Balance, _, cost int64) (account.Balance, account.Charge, bool) {
				return h.Spend(h.Front.Deadline-1, cost)
			}
		})},
		{"the life of a grant counts from its request", 11, weak(fleetOf(half, 2, late, fixed(2, whole)), func(f *fleet) {
			f.rules.byArrival = true
			f.rules.grantOf = func(_, received int64, res limiter.Result) account.Grant { return account.GrantOf(received, res) }
		})},
		{"a grant that comes late is given up", 10, weak(fleetOf(whole, 2, late, fixed(2, whole)), func(f *fleet) {
			f.rules.receive = func(h account.Balance, now int64, grant account.Grant, carryOver bool) (account.Balance, account.Grant) {
				grant.Deadline = max(grant.Deadline, now+1)
				return h.Receive(now, grant, carryOver)
			}
		})},
		{"credits die with their window", 5, fleetOf(whole, 2, func(f *fleet) { f.carry = true }, fixed(2, whole))},
		{"at most a batch less one is carried over", 17, weak(fleetOf(whole, 2, func(f *fleet) {
			f.carry, f.lowWater = true, 1
			f.audit = auditWindows(f.policies[0], 4)
		}, fixed(8, whole)), func(f *fleet) {
			f.rules.carry = func(h account.Balance, now, _ int64, into account.Grant) account.Balance {
				return h.CarryOver(now, limiter.MaxLimit, into)
			}
		})},
		{"time-coupled credits of two grants die apart", 11, weak(fleetOf(half, 1, func(f *fleet) { f.lowWater = 1 }, sliding(2, whole, half+quarter)), func(f *fleet) {
			f.rules.receive = func(h account.Balance, now int64, grant account.Grant, _ bool) (account.Balance, account.Grant) {
				grant.Credits += h.Front.Held(now)
				return account.Balance{Front: grant}, account.Grant{}
			}
		})},
		{"a cancelled cost joins credits of its own windows only", 7, weak(fleetOf(whole, 2, func(f *fleet) { f.cancels = true }, fixed(2, whole)), func(f *fleet) {
			f.rules.refund = func(h account.Balance, _ account.Charge, cost int64) (account.Balance, bool) {
				return h.Refund(h.Front.Charge, cost)
			}
		})},
		{"another store serves when nobody asks the old one", 8, weak(fleetOf(whole, 2, func(f *fleet) { f.moves = true }, fixed(2, whole)), func(f *fleet) {
			f.rules.hasty = true
		})},
	}
}

// weakStores are weakenings of what stores do.
func weakStores() []weakening {
	idle := func(*fleet) {}
	ahead := func(f *fleet) { f.lowWater = 1 }
	weak := func(f *fleet, step stepFunc) *fleet {
		f.rules.step = step
		return f
	}
	return []weakening{
		{"windows before the store's memory grant nothing", 3, weak(
			fleetOf(whole, 2, func(f *fleet) { f.restarts = 1 }, fixed(2, whole)),
			func(p limiter.Params, s limiter.State, now limiter.Instant, c limiter.Command) (limiter.State, limiter.Result) {
				c.Memory = limiter.Memory{}
				return p.Step(s, now, c)
			})},
		{"a bucket is full when the memory begins", 7, weak(
			fleetOf(half, 2, func(f *fleet) { f.restarts, f.lowWater = 1, 1 }, bucket(1, 2, half+quarter)),
			func(p limiter.Params, s limiter.State, now limiter.Instant, c limiter.Command) (limiter.State, limiter.Result) {
				c.Memory = limiter.Memory{}
				return p.Step(s, now, c)
			})},
		{"windows before the newest one served grant nothing", 6, weak(
			fleetOf(half, 2, func(f *fleet) {
				f.stepBack = 2
				f.audit = chargeAudit{limit: 2, latest: int64(epoch) / int64(whole)}
			}, fixed(2, whole)),
			func(p limiter.Params, s limiter.State, now limiter.Instant, c limiter.Command) (limiter.State, limiter.Result) {
				if s.N > 0 && s.Meters[0].Index > s.Meters[0].WindowAt(now).Index {
					s = limiter.State{}
				}
				return p.Step(s, now, c)
			})},
		{"no window before what holders know of the clock is served", 9, forgettingFleet(func(f *fleet) {
			f.rules.floor = func(store.Reading, int64) limiter.Instant { return 0 }
		})},
		{"of a memory that is new windows are doubtful in which the clock was behind", 7, forgettingFleet(func(f *fleet) {
			f.rules.forgot = func(_ store.Recollection, begun limiter.Instant) limiter.Instant { return begun }
		})},
		{"of a memory that is new windows are doubtful in which the one before answered", 6, forgettingFleet(func(f *fleet) {
			alone(f)
			f.rules.forgot = func(r store.Recollection, begun limiter.Instant) limiter.Instant {
				r.Shown = 0
				return r.Forgot(begun)
			}
		})},
		{"a look at a clock that is behind counts as an answer that is", 10, forgettingFleet(func(f *fleet) {
			f.rules.looked = store.Reading.Observe
		})},
		{"the store notes by what instant it drops a key", 7, jumpingFleet(func(f *fleet) { f.rules.unnoted = true })},
		{"a key is kept until nothing it granted counts", 5, func() *fleet {
			f := fleetOf(half, 2, func(f *fleet) { f.expires, f.lowWater = true, 1 }, bucket(1, 2, half+quarter))
			f.rules.keepFor = func(limiter.State, limiter.Instant) limiter.Micros { return 0 }
			return f
		}()},
		{"what was granted is stored, not what remains", 3, weak(
			fleetOf(whole, 2, idle, fixed(3, whole), fixed(2, whole)),
			func(p limiter.Params, s limiter.State, now limiter.Instant, c limiter.Command) (limiter.State, limiter.Result) {
				if m := &s.Meters[0]; p.Generation > s.Generation {
					remains := m.Limit - m.Used
					m.Used = p.Rates[0].Limit - min(remains, p.Rates[0].Limit)
				}
				return p.Step(s, now, c)
			})},
		{"an edit keeps the count", 3, weak(
			fleetOf(whole, 2, idle, fixed(2, whole), fixed(3, whole)),
			func(p limiter.Params, s limiter.State, now limiter.Instant, c limiter.Command) (limiter.State, limiter.Result) {
				if p.Generation > s.Generation {
					s = limiter.State{}
				}
				return p.Step(s, now, c)
			})},
		{"another window begins when the old one ends", 3, weak(
			fleetOf(half, 2, idle, fixed(2, whole), fixed(2, whole+half)),
			func(p limiter.Params, s limiter.State, now limiter.Instant, c limiter.Command) (limiter.State, limiter.Result) {
				if s.N > 0 && s.Meters[0].Window != p.Rates[0].Window {
					s = limiter.State{Generation: s.Generation}
				}
				return p.Step(s, now, c)
			})},
		{"an edit waits for the credits of another algorithm", 9, weak(
			fleetOf(half, 3, ahead, sliding(3, whole, half+quarter), fixed(3, whole)),
			func(p limiter.Params, s limiter.State, now limiter.Instant, c limiter.Command) (limiter.State, limiter.Result) {
				s.Expires = 0
				return p.Step(s, now, c)
			})},
		{"an older generation is refused", 3, weak(
			fleetOf(whole, 1, idle, fixed(2, whole), fixed(1, whole)),
			func(p limiter.Params, s limiter.State, now limiter.Instant, c limiter.Command) (limiter.State, limiter.Result) {
				p.Generation = max(p.Generation, s.Generation)
				return p.Step(s, now, c)
			})},
		{"a return counts in its own window only", 15, weak(
			fleetOf(whole, 2, func(f *fleet) { f.late, f.returns = true, true }, fixed(2, whole)),
			func(p limiter.Params, s limiter.State, now limiter.Instant, c limiter.Command) (limiter.State, limiter.Result) {
				if c.Op == limiter.Return {
					c.Windows = s.Windows(now)
				}
				return p.Step(s, now, c)
			})},
		{"a return is applied once", 4, weak(
			fleetOf(whole, 2, func(f *fleet) { f.returns = true }, fixed(3, whole)),
			func(p limiter.Params, s limiter.State, now limiter.Instant, c limiter.Command) (limiter.State, limiter.Result) {
				if c.Op == limiter.Return {
					s, _ = p.Step(s, now, c)
				}
				return p.Step(s, now, c)
			})},
		{"a store that takes over serves what begins later", 7, weak(
			fleetOf(half, 2, func(f *fleet) { f.moves = true }, fixed(2, whole)),
			func(p limiter.Params, s limiter.State, now limiter.Instant, c limiter.Command) (limiter.State, limiter.Result) {
				p.Since = 0
				return p.Step(s, now, c)
			})},
		{"what a declared tenant may still have is kept for it", 2, weak(fairFleet(),
			func(p limiter.Params, s limiter.State, now limiter.Instant, c limiter.Command) (limiter.State, limiter.Result) {
				p.Fairness = limiter.Fairness{}
				return p.Step(s, now, c)
			})},
		{"a bucket never drains below what its credits' lifetime lets out", 6, weak(fleetOf(half, 2, ahead, bucket(1, 2, half+quarter)), atOnce)},
		{"a sliding sum counts from the last instant of spending", 6, weak(fleetOf(half, 2, ahead, sliding(2, whole, half+quarter)), atOnce)},
	}
}

// atOnce decides as if what is granted were spent at once.
func atOnce(p limiter.Params, s limiter.State, now limiter.Instant, c limiter.Command) (limiter.State, limiter.Result) {
	lifetime := p.Lifetime
	p.Lifetime = 0
	next, res := p.Step(s, now, c)
	res.ExpiresIn = lifetime
	return next, res
}

// TestEveryRuleIsNeeded prints a shortest history that breaks the promise without
// the rule.
func TestEveryRuleIsNeeded(t *testing.T) {
	for _, w := range weakenings() {
		t.Run(w.rule, func(t *testing.T) {
			w.fleet.loose = true
			explore.RefuteIn(t, w.fleet.model(), w.steps)
		})
	}
}
