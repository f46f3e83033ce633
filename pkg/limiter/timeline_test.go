package limiter_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A timeline is one key of any algorithm, what can happen to the store around it,
// and an auditor.
type timeline struct {
	now    limiter.Instant // true time
	ahead  limiter.Micros  // by how much the store's clock is
	latest limiter.Instant // the newest that the clock showed
	params limiter.Params
	memory limiter.Memory
	state  limiter.State

	auditor
	leases []lease // what holders may still give back
}

// A lease is a grant in a holder's hand.
type lease struct {
	limiter.Result
	left      int64
	spendable int // position in the auditor's list, -1 for windows
}

func (w *timeline) clock() limiter.Instant { return w.now.Add(w.ahead) }

// wait lets time pass.
func (w *timeline) wait(d limiter.Micros) {
	w.now = w.now.Add(d)
	w.latest = max(w.latest, w.clock())
}

// step runs one command and checks what holds for every answer.
func (w *timeline) step(p limiter.Params, c limiter.Command) (limiter.Result, error) {
	c.Memory = w.memory
	next, res := p.Step(w.state, w.clock(), c)
	if res.Remaining < 0 || res.RetryAfter < 0 || res.ResetAfter < 0 || res.Delay < 0 || res.Limit < res.Remaining {
		return res, fmt.Errorf("a strange answer: %+v", res)
	}
	if layout(next, 0) != layout(w.state, 0) && next.Algorithm.WindowCoupled() {
		w.memory.Latest = max(w.memory.Latest, w.clock()) // as stores keep it
	}
	w.state = next
	return res, nil
}

// take asks for units, audits the answer, and compares it with a peek before it.
func (w *timeline) take(p limiter.Params, low, high int64) (limiter.Result, error) {
	before := *w
	c := limiter.Command{Min: low, Want: high}
	peek := c
	peek.Op, peek.Memory = limiter.Peek, w.memory
	same, forecast := p.Step(w.state, w.clock(), peek)
	res, err := w.step(p, c)
	switch {
	case err != nil:
		return res, err
	case !same.Equal(before.state):
		return res, errors.New("a peek changed the state")
	case forecast.Granted != res.Granted || forecast.Reason != res.Reason || forecast.RetryAfter != res.RetryAfter || forecast.Delay != res.Delay:
		return res, fmt.Errorf("a peek says %+v, the take %+v", forecast, res)
	case res.Granted != 0 && (res.Granted < low || res.Granted > high):
		return res, fmt.Errorf("granted %d of %d to %d", res.Granted, low, high)
	case (res.Granted > 0) != (res.Reason == limiter.Granted):
		return res, fmt.Errorf("granted %d with reason %v", res.Granted, res.Reason)
	case res.Granted > forecast.Remaining || res.Granted < min(high, forecast.Remaining) && res.Granted > 0:
		return res, fmt.Errorf("granted %d of %d, %d remained", res.Granted, high, forecast.Remaining)
	case res.Delay > p.MaxDelay:
		return res, fmt.Errorf("a delay of %d", res.Delay)
	}
	if res.Granted > 0 {
		l := lease{Result: res, left: res.Granted, spendable: -1}
		if !res.Algorithm.WindowCoupled() {
			l.spendable = len(w.grants)
		}
		w.leases = append(w.leases, l)
	}
	return res, errors.Join(w.note(p, w.now, res), before.checkRefusal(p, *w, res), w.checkRetry(p, c, res), w.checkReset(p, res))
}

// checkRefusal requires that a refused take leaves the state that a return in vain
// leaves: it takes nothing from any rate, also not from one that had room.
func (w *timeline) checkRefusal(p limiter.Params, after timeline, res limiter.Result) error {
	if res.Granted > 0 {
		return nil
	}
	idle, _ := p.Step(w.state, w.clock(), limiter.Command{Op: limiter.Return, Want: 1, Memory: w.memory})
	if !idle.Equal(after.state) {
		return fmt.Errorf("a refusal changed %+v to %+v", idle, after.state)
	}
	return nil
}

// checkReset requires that all of the limit is there after ResetAfter, when one rate
// is in force.
func (w *timeline) checkReset(p limiter.Params, res limiter.Result) error {
	if !inForce(p, res) || len(p.Rates) > 1 || res.Reason == limiter.ClockBehind || !w.settled(p) {
		return nil
	}
	later := w.clock().Add(res.ResetAfter)
	if _, r := p.Step(w.state, later, limiter.Command{Op: limiter.Peek, Min: 1, Want: 1, Memory: w.memory}); r.Remaining != r.Limit {
		return fmt.Errorf("%d of %d are left after the %d of %+v", r.Remaining, r.Limit, res.ResetAfter, res)
	}
	return nil
}

// settled reports whether the store's memory is not about to begin, and has no gaps.
func (w *timeline) settled(p limiter.Params) bool {
	return max(w.memory.Since, p.Since) <= w.clock() && len(w.memory.Gaps) == 0
}

// checkRetry requires that the refused command is granted after RetryAfter, and not
// a microsecond earlier.
func (w *timeline) checkRetry(p limiter.Params, c limiter.Command, res limiter.Result) error {
	never := res.Reason == limiter.TooLarge || res.Reason == limiter.StaleGeneration
	if res.Granted > 0 || never {
		if res.RetryAfter != 0 {
			return fmt.Errorf("retry after %d with %v", res.RetryAfter, res.Reason)
		}
		return nil
	}
	if res.RetryAfter == 0 {
		return fmt.Errorf("%v without a time to retry", res.Reason)
	}
	c.Memory = w.memory
	leftover := p.Any && !inForce(p, res) // windows of before have to end, and then one rate is enough
	if _, r := p.Step(w.state, w.clock().Add(res.RetryAfter-1), c); r.Granted > 0 && !leftover {
		return fmt.Errorf("%v with retry after %d, yet granted before", res.Reason, res.RetryAfter)
	}
	_, r := p.Step(w.state, w.clock().Add(res.RetryAfter), c)
	if inForce(p, res) && w.settled(p) && res.Reason != limiter.ClockBehind && r.Granted == 0 {
		return fmt.Errorf("%v with retry after %d, then %v", res.Reason, res.RetryAfter, r.Reason)
	}
	return nil
}

// giveBack returns a part of a lease.
func (w *timeline) giveBack(p limiter.Params, i int, amount int64) (limiter.Result, error) {
	l := &w.leases[i]
	c := limiter.Command{Op: limiter.Return, Want: amount, Windows: l.Windows, At: l.Now}
	res, err := w.step(p, c)
	seen := res
	seen.Granted = 0
	if err := errors.Join(err, w.note(p, w.now, seen)); err != nil || res.Granted == 0 {
		return res, err
	}
	if res.Granted != amount {
		return res, fmt.Errorf("a return of %d took back %d", amount, res.Granted)
	}
	if (l.spendable < 0) != res.Algorithm.WindowCoupled() {
		return res, fmt.Errorf("a grant of %v came back into %v", l.Algorithm, res.Algorithm)
	}
	w.auditor.giveBack(*l, w.clock(), amount)
	l.left -= amount
	return res, nil
}

// forget loses the state, as a restart does. The new memory begins after all the
// clock has shown.
func (w *timeline) forget() {
	w.state = limiter.State{}
	w.memory = limiter.Memory{Since: w.latest + 1, Latest: w.memory.Latest}
	w.auditor.forget()
}

// move goes on with another store, which knows nothing. Its clock is not behind.
func (w *timeline) move() {
	w.ahead += max(0, w.latest.Sub(w.clock()))
	w.state, w.memory = limiter.State{}, limiter.Memory{}
	w.params.Since = w.clock() + 1
	w.params.Generation++
	w.auditor.forget()
	w.leases = nil
	w.wait(1)
}

// handOver lets d pass unserved and keeps the state. Holders act alone once a window
// of every rate has begun meanwhile and what they had in hand has expired.
// The clock of a store that is handed over has caught up.
func (w *timeline) handOver(d limiter.Micros) {
	w.wait(max(0, w.latest.Sub(w.clock())))
	gap := limiter.Gap{From: w.clock(), To: w.clock().Add(d) + 1}
	w.memory.Gaps = append(w.memory.Gaps, gap)
	w.wait(d)
	w.memory.Latest = max(w.memory.Latest, w.clock())
	alone := !slices.ContainsFunc(w.params.Rates, func(r limiter.Rate) bool {
		return r.WindowAt(w.clock()).Start() < gap.From
	})
	sudden := !w.params.Algorithm.WindowCoupled() && w.params.Algorithm != limiter.LeakyBucket // what waits is not spent at once
	inHand := slices.ContainsFunc(w.grants, func(g spendable) bool { return g.until >= w.now })
	if alone && sudden && !inHand && w.state.Algorithm == w.params.Algorithm {
		w.spendAlone(w.params, w.now)
	}
}

// TestPromisesHoldOnRandomTimelines drives every algorithm through edits to every
// other, losses of memory, moves, hand-overs, returns and a clock that steps back.
func TestPromisesHoldOnRandomTimelines(t *testing.T) {
	const timelines, events = 4000, 150
	seen := map[limiter.Algorithm]map[limiter.Reason]int{}
	for a := range limiter.LeakyBucket + 1 {
		seen[a] = map[limiter.Reason]int{}
	}
	for seed := range uint64(timelines) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := &timeline{now: 10_000, latest: 10_000, params: tinyParams(rng)}
		var log []string
		for range events {
			what, res, err := w.randomEvent(rng)
			log = append(log, what)
			if err != nil {
				t.Fatalf("seed %d: %v\nunder %+v\nafter %q\nstate %+v", seed, err, w.params, log[max(0, len(log)-60):], w.state)
			}
			if res != nil {
				seen[res.Algorithm][res.Reason]++
			}
		}
	}
	for a, reasons := range seen {
		for _, r := range []limiter.Reason{limiter.Granted, limiter.Exhausted, limiter.Forfeited} {
			if reasons[r] < timelines/2 {
				t.Errorf("only %d answers of %v were %v: the timelines do not reach far enough", reasons[r], a, r)
			}
		}
	}
}

// TestPromisesHoldInEveryShortHistory walks through all that can happen in a few
// steps to pairs of tiny policies, the first edited into the second.
func TestPromisesHoldInEveryShortHistory(t *testing.T) {
	const steps = 6
	policies := map[string]limiter.Params{
		"window":         {Rates: []limiter.Rate{rate(2, 3)}},
		"sliding window": {Algorithm: limiter.SlidingWindow, Buckets: 2, Rates: []limiter.Rate{rate(2, 4)}, Lifetime: 1},
		"sliding log":    {Algorithm: limiter.SlidingLog, Rates: []limiter.Rate{rate(2, 3)}, Lifetime: 2},
		"token bucket":   {Algorithm: limiter.TokenBucket, Rates: []limiter.Rate{{Limit: 1, Window: 2, Burst: 2}}, Lifetime: 1},
		"GCRA":           {Algorithm: limiter.GCRA, Rates: []limiter.Rate{{Limit: 2, Window: 3, Burst: 3}}},
		"leaky bucket":   {Algorithm: limiter.LeakyBucket, Rates: []limiter.Rate{rate(1, 2)}, MaxDelay: 3},
	}
	histories := 0
	for from, before := range policies {
		for to, after := range policies {
			before.Generation, after.Generation = 1, 2
			var walk func(w *timeline, depth int, log []string)
			walk = func(w *timeline, depth int, log []string) {
				histories++
				if depth == steps {
					return
				}
				for what, event := range tinySteps {
					v := w.clone()
					happened, err := event(v, after)
					if err != nil {
						t.Fatalf("from %s to %s: %q, then %s: %v\n%+v", from, to, log, what, err, v.state)
					}
					if happened {
						walk(v, depth+1, append(log, what))
					}
				}
			}
			walk(&timeline{now: 10, latest: 10, params: before}, 0, nil)
		}
	}
	t.Logf("%d histories", histories)
}

// tinySteps are all that can happen. Each reports whether it did.
var tinySteps = map[string]func(w *timeline, after limiter.Params) (bool, error){
	"take one": func(w *timeline, _ limiter.Params) (bool, error) {
		_, err := w.take(w.params, 1, 1)
		return true, err
	},
	"lease three": func(w *timeline, _ limiter.Params) (bool, error) {
		_, err := w.take(w.params, 1, 3)
		return true, err
	},
	"give one back": func(w *timeline, _ limiter.Params) (bool, error) {
		if len(w.leases) == 0 || w.leases[0].left == 0 {
			return false, nil
		}
		_, err := w.giveBack(w.params, 0, 1)
		return true, err
	},
	"one passes": func(w *timeline, _ limiter.Params) (bool, error) {
		w.wait(1)
		return true, nil
	},
	"two pass": func(w *timeline, _ limiter.Params) (bool, error) {
		w.wait(2)
		return true, nil
	},
	"edit": func(w *timeline, after limiter.Params) (bool, error) {
		if w.params.Generation == after.Generation {
			return false, nil
		}
		w.params = after
		return true, nil
	},
	"restart": func(w *timeline, _ limiter.Params) (bool, error) {
		w.forget()
		return w.memory.Since > 0, nil
	},
}

func (w *timeline) clone() *timeline {
	v := *w
	v.eras, v.grants, v.windows, v.leases = slices.Clone(w.eras), slices.Clone(w.grants), slices.Clone(w.windows), slices.Clone(w.leases)
	return &v
}

func (w *timeline) randomEvent(rng *rand.Rand) (string, *limiter.Result, error) {
	p := w.params
	switch n := rng.IntN(200); {
	case n < 100:
		low := 1 + rng.Int64N(3)
		res, err := w.take(p, low, low+rng.Int64N(6))
		return fmt.Sprintf("%d: %d taken of %d, %v", w.clock(), res.Granted, low, res.Reason), &res, err
	case n < 125 && len(w.leases) > 0:
		i := max(len(w.leases)-1-rng.IntN(3), 0)
		if w.leases[i].left == 0 {
			return "", nil, nil
		}
		res, err := w.giveBack(p, i, 1+rng.Int64N(w.leases[i].left))
		return fmt.Sprintf("%d: %d given back of %d, %v", w.clock(), res.Granted, w.leases[i].Now, res.Reason), &res, err
	case n < 175:
		d := rng.IntN(12)
		w.wait(limiter.Micros(d))
		return fmt.Sprint(d, " pass"), nil, nil
	case n < 180:
		w.ahead -= limiter.Micros(rng.IntN(30))
		return fmt.Sprint("the clock steps back to ", w.clock()), nil, nil
	case n < 190:
		generation := p.Generation + 1
		w.params = edited(rng, p)
		w.params.Generation, w.params.Since = generation, p.Since
		return fmt.Sprintf("edit to %+v", w.params), nil, nil
	case n < 192:
		if w.state.KeepFor(w.clock()) <= 0 {
			w.state = limiter.State{}
			w.memory.Latest = max(w.memory.Latest, w.clock())
		}
		return "expiry", nil, nil
	case n < 194:
		w.handOver(limiter.Micros(rng.IntN(30)))
		return fmt.Sprint("hand-over until ", w.clock()), nil, nil
	case n < 196:
		w.forget()
		return "restart", nil, nil
	case n < 198:
		w.move()
		return "move", nil, nil
	default:
		w.wait(limiter.Micros(rng.IntN(200)))
		return "a long time passes", nil, nil
	}
}

// edited changes one thing or everything.
func edited(rng *rand.Rand, p limiter.Params) limiter.Params {
	for {
		next := p
		next.Rates = slices.Clone(p.Rates)
		r := &next.Rates[rng.IntN(len(next.Rates))]
		switch rng.IntN(6) {
		case 0:
			r.Limit = 1 + rng.Int64N(9)
		case 1:
			r.Burst = 1 + rng.Int64N(12)
		case 2:
			next.Lifetime = limiter.Micros(rng.Int64N(20))
		case 3:
			next.MaxDelay = limiter.Micros(rng.Int64N(40))
		default:
			return tinyParams(rng)
		}
		if fits(next) {
			return next
		}
	}
}

// tinyParams returns parameters of any algorithm with small numbers.
func tinyParams(rng *rand.Rand) limiter.Params {
	for {
		p := limiter.Params{Generation: 1, Algorithm: limiter.Algorithm(rng.IntN(int(limiter.LeakyBucket) + 1)), Any: rng.IntN(4) == 0}
		lengths := []limiter.Micros{7, 12, 20, 60}
		for _, i := range rng.Perm(len(lengths))[:1+rng.IntN(2)] {
			p.Rates = append(p.Rates, limiter.Rate{Limit: 1 + rng.Int64N(9), Window: lengths[i]})
		}
		last := &p.Rates[len(p.Rates)-1]
		switch p.Algorithm {
		case limiter.SlidingWindow:
			p.Buckets = 1 + rng.Int64N(5)
		case limiter.TokenBucket, limiter.GCRA:
			last.Burst = rng.Int64N(12)
		case limiter.LeakyBucket:
			p.MaxDelay = limiter.Micros(rng.Int64N(40))
		case limiter.FixedWindow:
			last.Offset = limiter.Micros(rng.Int64N(20) - 10)
		default:
		}
		if rng.IntN(2) == 0 {
			p.Lifetime = limiter.Micros(rng.Int64N(20))
		}
		if fits(p) {
			return p
		}
	}
}

// fits reports whether the parameters are valid but for windows that are too short
// for the wild.
func fits(p limiter.Params) bool {
	p.Rates = slices.Clone(p.Rates)
	scale := limiter.MinWindow
	p.Lifetime, p.MaxDelay = p.Lifetime*scale, p.MaxDelay*scale
	for i := range p.Rates {
		p.Rates[i].Window *= scale
		p.Rates[i].Offset *= scale
	}
	return p.Validate() == nil
}
