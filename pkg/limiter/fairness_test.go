package limiter_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// instances is how many random worlds of tenants each theorem is checked on.
const instances = 20_000

// A split is one window shared by tenants, some of them declared.
type split struct {
	params   limiter.Params
	state    limiter.State
	limit    int64
	names    []string
	weights  []int64
	declared []bool
	idle     []bool // asks for nothing, in this window and the one before
	demands  []int64
	granted  []int64
	most     int64 // the largest least amount that was asked for
}

// randomSplit returns 2 to 6 tenants with weights of 1 to 8, demands below 200 and a
// limit of 1 to 150. About one in four is idle.
func randomSplit(rng *rand.Rand) *split {
	n := 2 + rng.IntN(5)
	w := &split{limit: 1 + rng.Int64N(150), granted: make([]int64, n)}
	w.params = params(1, rate(w.limit, limiter.Second))
	w.params.Fairness.Default = 1 + rng.Int64N(8)
	for i := range n {
		weight, declared := w.params.Fairness.Default, rng.IntN(2) == 0
		name := fmt.Sprint("tenant ", i)
		if declared {
			weight = 1 + rng.Int64N(8)
			w.params.Fairness.Weights = append(w.params.Fairness.Weights, limiter.Weight{Tenant: name, Weight: weight})
		}
		w.names, w.weights = append(w.names, name), append(w.weights, weight)
		w.declared, w.demands = append(w.declared, declared), append(w.demands, 1+rng.Int64N(199))
		w.idle = append(w.idle, rng.IntN(4) == 0)
		if w.idle[i] {
			w.demands[i] = 0
		}
	}
	return w
}

// everyoneIsSeen notes all tenants in the window but the idle ones, as if each had asked
// in vain, or of the declared that they did in the window before.
func (w *split) everyoneIsSeen(rng *rand.Rand) {
	w.state = state(1, window(w.limit, limiter.Second, int64(at)/int64(limiter.Second), 0))
	for i, name := range w.names {
		if w.idle[i] {
			continue
		}
		seen := limiter.TenantUse{Tenant: name}
		if w.declared[i] && rng.IntN(2) == 0 {
			seen.Used = limiter.Lately
		}
		w.state.Tenants = append(w.state.Tenants, seen)
	}
}

// ask lets tenant i ask once, and returns what it was granted.
func (w *split) ask(t *testing.T, i int, low, high int64) int64 {
	t.Helper()
	c := limiter.Command{Op: limiter.Peek, Min: low, Want: high, Tenant: w.names[i]}
	same, forecast := w.params.Step(w.state, at, c)
	if !same.Equal(w.state) {
		t.Fatal("a peek changed the state")
	}
	var res limiter.Result
	c.Op = limiter.Take
	w.state, res = w.params.Step(w.state, at, c)
	if forecast.Granted != res.Granted {
		t.Fatalf("a peek says %+v, a take %+v", forecast, res)
	}
	w.granted[i] += res.Granted
	w.demands[i] -= res.Granted
	w.most = max(w.most, low)
	if res.Granted != 0 && (res.Granted < low || res.Granted > high) {
		t.Fatalf("granted %d of %d to %d", res.Granted, low, high)
	}
	if got, use := w.total(), w.noted(); got > w.limit || got != use || got != w.state.Meters[0].Used {
		t.Fatalf("T1: %d granted of %d, %d noted: %+v", got, w.limit, use, *w)
	}
	return res.Granted
}

func (w *split) total() int64 {
	var sum int64
	for _, a := range w.granted {
		sum += a
	}
	return sum
}

func (w *split) noted() int64 {
	var sum int64
	for _, u := range w.state.Tenants {
		sum += max(0, u.Used)
	}
	return sum
}

// exhaust lets tenants ask in random order, for amounts of at least 1 to quantum,
// until none is granted anything more, not even one unit.
func (w *split) exhaust(t *testing.T, rng *rand.Rand, quantum int64, tenants []int) {
	t.Helper()
	for refused := 0; refused < 4*len(tenants); {
		i := tenants[rng.IntN(len(tenants))]
		if w.demands[i] == 0 {
			refused++
			continue
		}
		low := 1 + rng.Int64N(min(quantum, w.demands[i]))
		if w.ask(t, i, low, low+rng.Int64N(w.demands[i]-low+1)) == 0 {
			refused++
		} else {
			refused = 0
		}
	}
	for _, i := range tenants {
		for w.demands[i] > 0 && w.ask(t, i, 1, 1) > 0 {
		}
	}
}

// guarantee is ⌊weight · limit / whole⌋ among those that share the window.
func (w *split) guarantee(i int) int64 {
	var whole int64
	for j, weight := range w.weights {
		if !w.idle[j] || w.params.Fairness.Reserve && w.declared[j] {
			whole += weight
		}
	}
	return w.weights[i] * w.limit / max(1, whole) // none when all are idle
}

// TestFairnessTheorems checks, in windows in which all tenants are known that want
// something, that the limit holds (T1), that each gets its guarantee (T2), that nothing is
// withheld that nobody is entitled to (T3), and that two that want more are apart by a
// request each (T4). A tenant that asked for something lately is entitled, and with
// Reserve each declared one.
func TestFairnessTheorems(t *testing.T) {
	for _, reserve := range []bool{false, true} {
		t.Run(fmt.Sprintf("reserve=%t", reserve), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(99, 0))
			for range instances {
				w := randomSplit(rng)
				w.params.Fairness.Reserve = reserve
				theorems(t, rng, w)
			}
		})
	}
}

func theorems(t *testing.T, rng *rand.Rand, w *split) {
	t.Helper()
	w.everyoneIsSeen(rng)
	wanted := append([]int64{}, w.demands...)
	target := waterFill(w.limit, w.weights, wanted)
	quantum := 1 + rng.Int64N(3)
	w.exhaust(t, rng, quantum, indices(len(w.names)))

	unused, hungry, idle := w.limit-w.total(), 0, 0
	for i, got := range w.granted {
		g := w.guarantee(i)
		if got < min(wanted[i], g) {
			t.Fatalf("T2: tenant %d got %d of %d, guaranteed %d: %+v", i, got, wanted[i], g, *w)
		}
		if got > g+w.most {
			t.Fatalf("tenant %d got %d, more than a request of %d beyond its guarantee of %d: %+v", i, got, w.most, g, *w)
		}
		switch {
		case w.idle[i] && (!w.params.Fairness.Reserve || !w.declared[i]):
			idle++
			continue
		case w.demands[i] == 0:
			unused -= max(0, g-got) // kept for it
			continue
		}
		hungry++
		for j := range i {
			if w.demands[j] > 0 && apart(w, i, j) {
				t.Fatalf("T4: tenants %d and %d got %d and %d: %+v", i, j, w.granted[i], w.granted[j], *w)
			}
		}
	}
	all := hungry+idle == len(w.names)
	if hungry > 0 && (unused >= int64(len(w.names)) || unused > 0 && all) {
		t.Fatalf("T3: %d unused while %d tenants want more: %+v", unused, hungry, *w)
	}
	if !all || w.most > 1 {
		return
	}
	for i, got := range w.granted {
		if got > target[i]+1 || got < target[i]-1 {
			t.Fatalf("tenants who all want more got %v, water-filling gives %v", w.granted, target)
		}
	}
}

// apart reports whether |aᵢ/wᵢ − aⱼ/wⱼ| > q · (1/wᵢ + 1/wⱼ).
func apart(w *split, i, j int) bool {
	d := w.granted[i]*w.weights[j] - w.granted[j]*w.weights[i]
	return max(d, -d) > w.most*(w.weights[i]+w.weights[j])
}

// TestALateDeclaredTenantKeepsItsGuarantee lets all others take what they get
// before the tenant asks for the first time in the window: it asked in the one before, or
// its part is reserved.
func TestALateDeclaredTenantKeepsItsGuarantee(t *testing.T) {
	rng := rand.New(rand.NewPCG(100, 0))
	late := 0
	for i := range instances {
		w := randomSplit(rng)
		last := len(w.names) - 1
		if !w.declared[last] || w.idle[last] {
			continue
		}
		late++
		w.params.Fairness.Reserve = i%2 == 0
		if !w.params.Fairness.Reserve {
			w.everyoneIsSeen(rng)
			w.state.Tenants[len(w.state.Tenants)-1].Used = limiter.Lately
		}
		wanted := w.demands[last]
		w.exhaust(t, rng, 3, indices(last))
		w.exhaust(t, rng, 3, []int{last})
		if got, g := w.granted[last], w.guarantee(last); got < min(wanted, g) {
			t.Fatalf("the late tenant got %d of %d, guaranteed %d: %+v", got, wanted, g, *w)
		}
	}
	if late < instances/4 {
		t.Errorf("only %d late tenants", late)
	}
}

// TestEditsOfWeightsOpenNoSecondBudget changes weights, tenants and fairness itself
// inside a window, gives some back, and counts what was granted.
func TestEditsOfWeightsOpenNoSecondBudget(t *testing.T) {
	rng := rand.New(rand.NewPCG(101, 0))
	for range instances / 10 {
		limit := 1 + rng.Int64N(150)
		var s limiter.State
		var total int64
		for generation := range int64(6) {
			p := randomSplit(rng).params
			p.Generation, p.Rates[0].Limit = generation+1, limit
			p.Fairness.Reserve = rng.IntN(2) == 0
			if rng.IntN(4) == 0 {
				p.Fairness = limiter.Fairness{}
			}
			for range 20 {
				tenant := fmt.Sprint("tenant ", rng.IntN(6))
				c := limiter.Command{Min: 1, Want: 1 + rng.Int64N(20), Tenant: tenant}
				var res limiter.Result
				s, res = p.Step(s, at, c)
				if total += res.Granted; total > limit {
					t.Fatalf("granted %d of %d", total, limit)
				}
				if rng.IntN(5) == 0 && res.Granted > 0 {
					back := limiter.Command{Op: limiter.Return, Want: 1 + rng.Int64N(res.Granted), Tenant: tenant, Windows: res.Windows}
					s, res = p.Step(s, at, back)
					if total -= res.Granted; res.Granted != back.Want {
						t.Fatalf("a return ended in %v", res.Reason)
					}
				}
			}
			if total != s.Meters[0].Used {
				t.Fatalf("the window counts %d of %d", s.Meters[0].Used, total)
			}
		}
	}
}

// TestNoTenantIsForgotten has far more tenants than are distinguished.
func TestNoTenantIsForgotten(t *testing.T) {
	const tenants = limiter.MaxTenants + 500
	p := params(1, rate(2*tenants, limiter.Second))
	p.Fairness = limiter.Fairness{Default: 1, Weights: []limiter.Weight{{Tenant: "gold", Weight: 8}}, Reserve: true}
	var s limiter.State
	var total int64
	for i := range 2 * tenants {
		var res limiter.Result
		c := limiter.Command{Min: 1, Want: 10, Tenant: fmt.Sprint(i % tenants)}
		s, res = p.Step(s, at, c)
		total += res.Granted
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := len(s.Tenants); got != limiter.MaxTenants+1 {
		t.Errorf("%d tenants are distinguished, want %d and the rest", got, limiter.MaxTenants)
	}
	if total > p.Rates[0].Limit || total != s.Meters[0].Used {
		t.Errorf("%d granted of %d, %d counted", total, p.Rates[0].Limit, s.Meters[0].Used)
	}
	guarantee := 8 * p.Rates[0].Limit / (8 + limiter.MaxTenants + 1)
	if _, res := p.Step(s, at, limiter.Command{Min: 1, Want: guarantee, Tenant: "gold"}); res.Granted != guarantee {
		t.Errorf("the declared tenant gets %d of its %d", res.Granted, guarantee)
	}
	s, _ = p.Step(s, at+limiter.Instant(limiter.Second), take(1, 1))
	if len(s.Tenants) != 1 {
		t.Errorf("%d tenants in the next window, want the one that asked", len(s.Tenants))
	}
}

// TestAnIdleTenantLendsItsPart and has it back from its first request on, as far as it
// is not granted by then, and whole in the next window.
func TestAnIdleTenantLendsItsPart(t *testing.T) {
	p := params(1, rate(70, limiter.Second))
	p.Fairness = limiter.Fairness{Default: 1, Weights: []limiter.Weight{{Tenant: "b", Weight: 2}, {Tenant: "gold", Weight: 4}}}
	var s limiter.State
	now := at
	ask := func(tenant string, want int64) (granted int64) {
		for range want {
			var res limiter.Result
			s, res = p.Step(s, now, limiter.Command{Min: 1, Want: 1, Tenant: tenant})
			granted += res.Granted
		}
		return granted
	}
	expect := func(what string, got map[string]int64, want map[string]int64) {
		t.Helper()
		for tenant, n := range want {
			if got[tenant] != n {
				t.Errorf("%s: %s got %d, want %d", what, tenant, got[tenant], n)
			}
		}
	}
	both := func(n int64) map[string]int64 {
		got := map[string]int64{}
		for range n {
			for _, tenant := range []string{"b", "c"} {
				got[tenant] += ask(tenant, 1)
			}
		}
		return got
	}
	next := func() { now = now.Add(limiter.Second) }
	ask("b", 1)
	ask("c", 1)
	next()
	expect("gold is idle", both(70), map[string]int64{"b": 46, "c": 24})
	next()
	got := both(20)
	got["gold"] = ask("gold", 70)
	rest := both(70)
	expect("gold is back when 40 of 70 are granted", got, map[string]int64{"gold": 30})
	expect("what gold may still have is kept", rest, map[string]int64{"b": 0, "c": 0})
	next()
	got = both(70)
	got["gold"] = ask("gold", 70)
	expect("gold asked in the window before", got, map[string]int64{"b": 20, "c": 10, "gold": 40})
	next()
	expect("gold asked in the window before, and not in this one", both(70), map[string]int64{"b": 20, "c": 10})
	next()
	expect("gold is idle again", both(70), map[string]int64{"b": 46, "c": 24})
	now = now.Add(2 * limiter.Second)
	expect("nobody asked in the window before", map[string]int64{"c": ask("c", 70)}, map[string]int64{"c": 70})
}

// TestATenantReturnsItsGrants and no more, and can ask for it again.
func TestATenantReturnsItsGrants(t *testing.T) {
	p := params(1, rate(100, limiter.Second))
	p.Fairness = limiter.Fairness{Default: 1, Weights: []limiter.Weight{{Tenant: "gold", Weight: 3}}, Reserve: true}
	var s limiter.State
	var res limiter.Result
	do := func(op limiter.Op, tenant string, amount, granted int64) {
		t.Helper()
		c := limiter.Command{Op: op, Min: 1, Want: amount, Tenant: tenant, Windows: s.Windows(at)}
		if s, res = p.Step(s, at, c); res.Granted != granted {
			t.Errorf("%d of %d granted to %s by %d: %v", res.Granted, amount, tenant, op, res.Reason)
		}
	}
	do(limiter.Take, "a", 100, 25)
	do(limiter.Take, "gold", 10, 10)
	do(limiter.Return, "gold", 11, 0)
	do(limiter.Return, "b", 1, 0)
	do(limiter.Return, "a", 5, 5)
	do(limiter.Take, "b", 100, 20)
	do(limiter.Return, "b", 5, 5)
	do(limiter.Return, "a", 10, 10)
	do(limiter.Take, "a", 100, 10) // its guarantee is 20 by now, and it holds 10
}

func TestFairResults(t *testing.T) {
	p := params(1, rate(100, short))
	p.Fairness = limiter.Fairness{Default: 1, Weights: []limiter.Weight{{Tenant: "gold", Weight: 3}}, Reserve: true}
	used := func(gold, a, b int64) limiter.State {
		s := state(1, window(100, short, 12, gold+a+b))
		s.Tenants = []limiter.TenantUse{{Tenant: "a", Used: a}, {Tenant: "b", Used: b}, {Tenant: "gold", Used: gold}}
		return s
	}
	ask := func(tenant string, low, high int64) limiter.Command {
		return limiter.Command{Min: low, Want: high, Tenant: tenant}
	}
	for name, c := range map[string]struct {
		state   limiter.State
		command limiter.Command
		want    limiter.Result
	}{
		"the first to ask shares with the declared": {
			state(0), ask("a", 1, 99), limiter.Result{Granted: 25, Limit: 25, Remaining: 0},
		},
		"the declared shares with nobody at first": {
			state(0), ask("gold", 1, 99), limiter.Result{Granted: 99, Limit: 100, Remaining: 1},
		},
		"a tenant sees its own share": {
			used(0, 5, 5), ask("a", 1, 3), limiter.Result{Granted: 3, Limit: 20, Remaining: 12},
		},
		"a tenant that has used its share waits for the window to end": {
			used(0, 20, 5), ask("a", 1, 3), limiter.Result{Reason: limiter.Exhausted, Limit: 20, RetryAfter: 50},
		},
		"a cost that the rest of a share cannot hold is refused": {
			used(0, 19, 5), ask("a", 2, 2), limiter.Result{Reason: limiter.Exhausted, Limit: 20, Remaining: 1, RetryAfter: 50},
		},
		"a tenant gets the rest of its share": {
			used(60, 19, 20), ask("a", 1, 9), limiter.Result{Granted: 1, Limit: 20},
		},
		"no guarantee lifts the limit": {
			used(90, 5, 5), ask("b", 1, 9), limiter.Result{Reason: limiter.Exhausted, Limit: 5, RetryAfter: 50},
		},
		"a cost that the declared never leave is too large": {
			state(0), ask("a", 26, 26), limiter.Result{Reason: limiter.TooLarge, Limit: 25, Remaining: 25},
		},
		"a cost that a share holds in an empty window is not": {
			used(0, 0, 0), ask("a", 25, 25), limiter.Result{Reason: limiter.Exhausted, Limit: 20, Remaining: 20, RetryAfter: 50},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := p.Step(c.state, at, c.command)
			if got.Reason != c.want.Reason || got.Granted != c.want.Granted || got.Limit != c.want.Limit ||
				got.Remaining != c.want.Remaining || got.RetryAfter != c.want.RetryAfter {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if got.Reason != limiter.Exhausted {
				return
			}
			if _, later := p.Step(c.state, at.Add(got.RetryAfter), c.command); later.Reason != limiter.Granted {
				t.Errorf("after the wait: %v", later.Reason)
			}
		})
	}
}

// TestWhatATenantGainsByLying: weighted-fair escrow is not strategy-proof. The figures are those
// of docs/guarantees.md. Whatever a tenant does, the window admits no more than its limit, and
// what the others are guaranteed among the names that ask is theirs.
func TestWhatATenantGainsByLying(t *testing.T) {
	type ask struct {
		window       int // asks of earlier windows come first
		tenant       string
		want, expect int64
	}
	for name, tc := range map[string]struct {
		declared []limiter.Weight
		asks     []ask
	}{
		"a tenant alone has it all":          {nil, []ask{{0, "b", 100, 100}}},
		"one request holds a part":           {nil, []ask{{0, "liar", 1, 1}, {0, "b", 100, 50}}},
		"for its window":                     {nil, []ask{{0, "liar", 1, 1}, {0, "b", 100, 50}, {1, "b", 100, 100}}},
		"a declared tenant's, for the next":  {[]limiter.Weight{{Tenant: "liar", Weight: 1}}, []ask{{0, "liar", 1, 1}, {0, "b", 100, 50}, {1, "b", 100, 50}, {2, "b", 100, 100}}},
		"what is not needed is gone":         {nil, []ask{{0, "liar", 50, 50}, {0, "b", 100, 50}}},
		"but no more than the part":          {nil, []ask{{0, "b", 1, 1}, {0, "liar", 100, 50}, {0, "b", 100, 49}}},
		"three names have three parts":       {nil, []ask{{0, "liar 1", 1, 1}, {0, "liar 2", 1, 1}, {0, "liar 3", 1, 1}, {0, "b", 100, 25}, {0, "liar 1", 100, 24}, {0, "liar 2", 100, 24}, {0, "liar 3", 100, 24}}},
		"a declared tenant, alone":           {[]limiter.Weight{{Tenant: "gold", Weight: 4}}, []ask{{0, "b", 1, 1}, {0, "gold", 100, 80}}},
		"a declared tenant, and three names": {[]limiter.Weight{{Tenant: "gold", Weight: 4}}, []ask{{0, "liar 1", 1, 1}, {0, "liar 2", 1, 1}, {0, "liar 3", 1, 1}, {0, "gold", 100, 58}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := params(1, rate(100, limiter.Second))
			p.Fairness = limiter.Fairness{Default: 1, Weights: tc.declared}
			var s limiter.State
			admitted := map[int]int64{}
			for _, a := range tc.asks {
				var got int64
				for range a.want {
					var res limiter.Result
					s, res = p.Step(s, at.Add(limiter.Micros(a.window)*limiter.Second), limiter.Command{Min: 1, Want: 1, Tenant: a.tenant})
					got += res.Granted
				}
				if got != a.expect {
					t.Errorf("window %d: %s got %d of %d, want %d", a.window, a.tenant, got, a.want, a.expect)
				}
				if admitted[a.window] += got; admitted[a.window] > 100 {
					t.Errorf("window %d admitted %d", a.window, admitted[a.window])
				}
			}
		})
	}
}
