package federation

import (
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// TestATenantThatIsLate has a loud tenant ask for all of a region's part, which is 100, and a
// quiet one of the same weight after it.
func TestATenantThatIsLate(t *testing.T) {
	type step struct {
		op     limiter.Op
		window int64 // 10 is that of the flood
		units  int64
	}
	take := func(window, units int64) step { return step{limiter.Take, window, units} }
	for name, c := range map[string]struct {
		declared bool
		quiet    []step // before the flood
		want     int64  // units that the quiet one gets of the window, which it wants all of
	}{
		"declared, asked in the window before":           {true, []step{take(9, 1)}, 50},
		"declared, asked in this window":                 {true, []step{take(10, 1)}, 50},
		"declared, wanted all of the window before":      {true, []step{take(9, 100)}, 50},
		"declared, idle for a window":                    {true, []step{take(8, 1)}, 0},
		"declared, never asked":                          {true, nil, 0},
		"not declared, new":                              {false, []step{take(10, 1)}, 50},
		"not declared, did not ask yet":                  {false, []step{take(9, 30)}, 0},
		"not declared, wanted 30 in the window before":   {false, []step{take(9, 30), take(10, 1)}, 30},
		"not declared, asks for more than before":        {false, []step{take(9, 20), take(10, 40)}, 40},
		"not declared, wanted more than its part":        {false, []step{take(9, 80), take(10, 1)}, 50},
		"not declared, idle for a window":                {false, []step{take(8, 30), take(10, 1)}, 50},
		"not declared, gave back what it took":           {false, []step{take(9, 30), {limiter.Return, 9, 20}, take(10, 1)}, 10},
		"not declared, looked at what there is":          {false, []step{{limiter.Peek, 10, 30}}, 0},
		"not declared, was refused in the window before": {false, []step{take(9, 0), take(10, 1)}, 30},
	} {
		t.Run(name, func(t *testing.T) {
			s := split{}
			var used int64
			rate := limiter.Rate{Limit: 1000, Window: limiter.Second}
			fairness := limiter.Fairness{Default: 1}
			if c.declared {
				fairness.Weights = []limiter.Weight{{Tenant: "quiet", Weight: 1}}
			}
			ask := func(tenant string, do step) int64 {
				q := &request{params: limiter.Params{Rates: []limiter.Rate{rate}, Fairness: fairness}}
				q.Op, q.Min, q.Want, q.Tenant = do.op, 1, do.units, tenant
				of := portion{rate: rate, index: do.window, at: limiter.Instant(do.window * int64(limiter.Second)), units: do.units, more: 100 - used - do.units}
				switch {
				case do.units == 0: // the coordinator has nothing
					q.Want = 30
					s.missed(q, do.window)
					return 0
				case do.op == limiter.Return:
					s.putBack(q, of)
					return 0
				default:
					return s.take(q, of).Granted
				}
			}
			flood := func(tenant string, window int64) (units int64) {
				for used < 100 {
					got := ask(tenant, take(window, 1))
					if got == 0 {
						break
					}
					units, used = units+got, used+got
				}
				return units
			}
			var quiet int64
			for _, do := range c.quiet {
				if got := ask("quiet", do); do.window == 10 && do.op == limiter.Take {
					quiet, used = quiet+got, used+got
				}
			}
			flood("loud", 10)
			if quiet += flood("quiet", 10); quiet < c.want-1 || quiet > c.want+1 {
				t.Errorf("got %d, want %d or 1 beside it", quiet, c.want)
			}
		})
	}
}

// TestTheFirstRequestCountsItsTenant has one that is as large as the part.
func TestTheFirstRequestCountsItsTenant(t *testing.T) {
	for before, want := range map[int64]int64{30: 70, 60: 50} {
		s := split{}
		rate := limiter.Rate{Limit: 1000, Window: limiter.Second}
		take := func(tenant string, window, units, more int64) int64 {
			q := &request{params: limiter.Params{Rates: []limiter.Rate{rate}, Fairness: limiter.Fairness{Default: 1}}}
			q.Op, q.Min, q.Want, q.Tenant = limiter.Take, 1, units, tenant
			return s.take(q, portion{rate: rate, index: window, at: limiter.Instant(window * int64(limiter.Second)), units: units, more: more}).Granted
		}
		take("quiet", 9, before, 100-before)
		take("quiet", 10, 1, 99)
		if got := take("loud", 10, 99, 0); got != want {
			t.Errorf("got %d of 100 beside one that wants %d, want %d", got, before, want)
		}
	}
}

// TestAnEditEndsTheSplit has a limit that is split over tenants no more.
func TestAnEditEndsTheSplit(t *testing.T) {
	s := split{}
	rate := limiter.Rate{Limit: 100, Window: limiter.Second}
	take := func(tenant string, fairness limiter.Fairness, window, units int64) int64 {
		q := &request{params: limiter.Params{Rates: []limiter.Rate{rate}, Fairness: fairness}}
		q.Op, q.Min, q.Want, q.Tenant = limiter.Take, 1, units, tenant
		return s.take(q, portion{rate: rate, index: window, at: limiter.Instant(window * int64(limiter.Second)), units: units}).Granted
	}
	take("quiet", limiter.Fairness{Default: 1}, 9, 30)
	take("quiet", limiter.Fairness{Default: 1}, 10, 1)
	if got := take("", limiter.Fairness{}, 10, 99); got != 99 {
		t.Errorf("got %d of 99", got)
	}
}

// TestAPeekDividesNothing: neither for a limit that nobody asked for, nor in a window in which
// only peeks were made.
func TestAPeekDividesNothing(t *testing.T) {
	s := split{}
	rate := limiter.Rate{Limit: 100, Window: limiter.Second}
	ask := func(op limiter.Op, hash string, index int64) limiter.Result {
		q := &request{key: store.Key{Hash: hash}, params: limiter.Params{Rates: []limiter.Rate{rate}, Fairness: limiter.Fairness{Default: 1}}}
		q.Op, q.Min, q.Want, q.Tenant = op, 1, 10, "t"
		return s.take(q, portion{rate: rate, index: index, at: limiter.Instant(index * int64(limiter.Second)), units: 10, more: 90})
	}
	for range 100 {
		if got := ask(limiter.Peek, "invented", 5).Granted; got != 10 {
			t.Fatalf("a peek foresees %d, want 10", got)
		}
	}
	if len(s) != 0 {
		t.Errorf("%d divisions, want none", len(s))
	}
	ask(limiter.Take, "asked", 5)
	before := *s[store.Key{Hash: "asked"}]
	ask(limiter.Peek, "asked", 6)
	if after := *s[store.Key{Hash: "asked"}]; after.index != before.index || !after.state.Equal(before.state) || len(after.tenants) != len(before.tenants) {
		t.Errorf("a peek changed %+v to %+v", before, after)
	}
}
