package simulate

import (
	"fmt"
	"time"

	"github.com/weir-dev/weir/internal/testing/plot"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier"
)

// fleets compares sizes of fleets under overload.
func (m *measurement) fleets() func() {
	said := map[int]struct{ utilization, trips float64 }{
		2: {0.808, 41}, 8: {1, 127}, 32: {1, 338}, 128: {0.844, 920}, 256: {0.700, 1361}, 512: {0.387, 1908},
	}
	type runs struct{ weir, whole, carried, static func() Result }
	all := map[int]runs{}
	for _, n := range sizes {
		all[n] = runs{
			weir:    m.play(m.fleet(Weir("weir", adaptive), n)),
			whole:   m.batch.add(m.fleet(AllOrNothing("all or nothing", lot, false), n)),
			carried: m.batch.add(m.fleet(AllOrNothing("carry-over", 50, true), n)),
			static:  m.batch.add(m.fleet(Static(), n)),
		}
	}
	return func() {
		t := Table{
			Title: "Fleets under overload",
			Notes: []string{
				"Limit 1,000 units in windows of 100 ms, three times as many requests, round trips of 5 ± 3 ms.",
				"Published are the figures of ThrottleKit's window-coupled leases of 20; *all or nothing* is our model of",
				"them on the same requests, *carry-over* the same with leases of 50 that outlive their window, *static* an",
				"equal part of the limit for each holder. Weir leases by its defaults. U is utilization: what was admitted",
				"of what could be. Round trips are per window; the goal is 2.5 × max(holders, limit / 20).",
			},
			Head: []string{
				"holders", "published U", "all or nothing U", "static U", "**Weir U**",
				"published trips", "all or nothing trips", "**Weir trips**", "goal", "carry-over Δ", "**Weir Δ**",
			},
		}
		lines := map[string]*[3]plot.Line{}
		for _, name := range []string{"Weir", "all or nothing, coupled", "all or nothing, carried over", "static"} {
			lines[name] = &[3]plot.Line{{Name: name}, {Name: name}, {Name: name}}
		}
		for _, n := range sizes {
			r, s := all[n], said[n]
			weir, whole20, carried, static := r.weir(), r.whole(), r.carried(), r.static()
			t.Rows = append(t.Rows, []string{
				fmt.Sprint(n), ratio(s.utilization), ratio(whole20.Utilization), ratio(static.Utilization), ratio(weir.Utilization),
				whole(s.trips), whole(whole20.RoundTrips), whole(weir.RoundTrips), whole(goal(n)), count(carried.Overshoot), count(weir.Overshoot),
			})
			for name, result := range map[string]Result{
				"Weir": weir, "all or nothing, coupled": whole20, "all or nothing, carried over": carried, "static": static,
			} {
				for i, y := range []float64{float64(result.Overshoot), result.Utilization, result.RoundTrips} {
					l := &lines[name][i]
					l.X, l.Y = append(l.X, float64(n)), append(l.Y, y)
				}
			}
		}
		m.table(t)
		panels := []plot.Panel{
			{Title: "Δ, units admitted beyond the limit", Axis: "holders"},
			{Title: "Utilization", Axis: "holders", Top: 1},
			{Title: "Round trips per window", Axis: "holders", Log: true},
		}
		for i := range panels {
			for _, name := range []string{"Weir", "all or nothing, coupled", "all or nothing, carried over", "static"} {
				panels[i].Lines = append(panels[i].Lines, lines[name][i])
			}
		}
		var bound plot.Line
		for _, n := range sizes {
			bound.X, bound.Y = append(bound.X, float64(n)), append(bound.Y, goal(n))
		}
		bound.Name = "goal: 2.5 × max(holders, limit / 20)"
		panels[2].Lines = append(panels[2].Lines, bound)
		m.report.Panels = panels
	}
}

// loads compares loads from half the limit on.
func (m *measurement) loads() func() {
	factors := []float64{0.5, 0.9, 1.1, 1.5, 3}
	fleets := []int{8, 64, 512}
	type cell struct {
		factor float64
		n      int
	}
	weir, others := map[cell]func() Result{}, map[cell]func() Result{}
	for _, f := range factors {
		for _, n := range fleets {
			scenario := func(model Model) Scenario {
				s := m.fleet(model, n)
				s.Params.Rates = []limiter.Rate{{Limit: limit, Window: limiter.Second}}
				s.Load.Rate = f * limit
				return s
			}
			weir[cell{f, n}] = m.play(scenario(Weir("weir", adaptive)))
			others[cell{f, n}] = m.batch.add(scenario(AllOrNothing("all or nothing", lot, false)))
		}
	}
	return func() {
		t := Table{
			Title: "Loads",
			Notes: []string{
				"Limit 1,000 a second; the load is a multiple of it. Others lack what one holder has left at the end of a window,",
				"so a load near the limit is harder than a high one. Utilization and round trips per window.",
			},
			Head: []string{"load"},
		}
		for _, n := range fleets {
			t.Head = append(t.Head, fmt.Sprintf("%d holders: all or nothing", n), fmt.Sprintf("**%d: Weir**", n))
		}
		for _, f := range factors {
			row := []string{fmt.Sprintf("%.1f", f)}
			for _, n := range fleets {
				for _, result := range []func() Result{others[cell{f, n}], weir[cell{f, n}]} {
					r := result()
					row = append(row, ratio(r.Utilization)+" · "+whole(r.RoundTrips))
				}
			}
			t.Rows = append(t.Rows, row)
		}
		m.table(t)
	}
}

// algorithms compares what the algorithms cost.
func (m *measurement) algorithms() func() {
	columns := []struct {
		name     string
		kind     limiter.Algorithm
		lifetime limiter.Micros
		most     float64 // utilization that the lifetime leaves room for
	}{
		{"fixed window", limiter.FixedWindow, 0, 1},
		{"token bucket, 50 ms", limiter.TokenBucket, 50 * limiter.Millisecond, 1},
		{"token bucket, 500 ms", limiter.TokenBucket, 500 * limiter.Millisecond, 1},
		{"sliding log, 20 ms", limiter.SlidingLog, 20 * limiter.Millisecond, 1 / 1.02},
		{"sliding log, 200 ms", limiter.SlidingLog, 200 * limiter.Millisecond, 1 / 1.2},
	}
	results := make([]map[int]func() Result, len(columns))
	for i, c := range columns {
		results[i] = map[int]func() Result{}
		for _, n := range sizes {
			s := m.fleet(Weir(c.name, adaptive), n)
			s.Params = limiter.Params{Generation: 1, Algorithm: c.kind, Lifetime: c.lifetime, Rates: []limiter.Rate{{Limit: limit, Window: limiter.Second}}}
			s.Load.Rate, s.Warm = 3*limit, 5
			s.Windows += 3
			results[i][n] = m.play(s)
		}
	}
	return func() {
		t := Table{
			Title: "Algorithms",
			Notes: []string{
				"Weir at 1,000 a second and three times the load; of algorithms without windows the lifetime of credits.",
				"A sliding log counts a grant until its credits have died and a window has passed, so at most",
				"window / (window + lifetime) of the limit is used, which is what utilization is of here. A bucket fills by its",
				"rate whatever the lifetime is. A lease is no larger than what is asked for while it lives, so short lifetimes",
				"cost round trips in large fleets. Utilization, round trips per second, and Δ over all runs of the column.",
			},
			Head: []string{"holders"},
		}
		for _, c := range columns {
			t.Head = append(t.Head, c.name)
		}
		most := make([]int64, len(columns))
		for _, n := range sizes {
			row := []string{fmt.Sprint(n)}
			for i, c := range columns {
				r := results[i][n]()
				most[i] = max(most[i], r.Overshoot)
				row = append(row, ratio(min(1, r.Utilization/c.most))+" · "+whole(r.RoundTrips))
			}
			t.Rows = append(t.Rows, row)
		}
		last := []string{"Δ"}
		for _, overshoot := range most {
			last = append(last, count(overshoot))
		}
		t.Rows = append(t.Rows, last)
		m.table(t)
	}
}

// skews compares how the load is spread over 512 holders.
func (m *measurement) skews() func() {
	const n = 512
	shares := []struct {
		name   string
		active int
		share  func(i int) float64
	}{
		{"equal", n, func(int) float64 { return 1 }},
		{"8 active, the others silent", 8, func(i int) float64 { return float64(btoi(i < 8)) }},
		{"64 active, the others silent", 64, func(i int) float64 { return float64(btoi(i < 64)) }},
		{"2 take 90 %, the others the rest", n, func(i int) float64 { return 0.45*float64(btoi(i < 2)) + 0.1/n }},
		{"Zipf", n, func(i int) float64 { return 1 / float64(i+1) }},
	}
	type runs struct{ weir, fast, other, static func() Result }
	var all []runs
	for _, c := range shares {
		share := make([]float64, n)
		for i := range share {
			share[i] = c.share(i)
		}
		scenario := func(model Model) Scenario {
			s := m.fleet(model, n)
			s.Load.Share = share
			s.Params.Rates = []limiter.Rate{{Limit: limit, Window: limiter.Second}}
			s.Load.Rate = 3 * limit
			return s
		}
		fast := m.fleet(Weir("weir", adaptive), n)
		fast.Load.Share = share
		all = append(all, runs{
			m.play(scenario(Weir("weir", adaptive))),
			m.play(fast),
			m.batch.add(scenario(AllOrNothing("all or nothing", lot, false))),
			m.batch.add(scenario(Static())),
		})
	}
	return func() {
		t := Table{
			Title: "Skew",
			Notes: []string{
				"512 holders, 1,000 a second, three times the load, spread unevenly. The goal counts the active holders. The last",
				"column is for windows of 100 ms, in which a busy holder has time for 20 round trips at most: the store keeps a part",
				"for each holder that has not asked yet, and those that ask late leave theirs unused.",
			},
			Head: []string{
				"load", "static U", "all or nothing U", "**Weir U**", "all or nothing trips", "**Weir trips**", "goal",
				"**Weir Δ**", "**Weir U, 100 ms**",
			},
		}
		for i, c := range shares {
			weir, fast, other, static := all[i].weir(), all[i].fast(), all[i].other(), all[i].static()
			t.Rows = append(t.Rows, []string{
				c.name, ratio(static.Utilization), ratio(other.Utilization), ratio(weir.Utilization),
				whole(other.RoundTrips), whole(weir.RoundTrips), whole(goal(c.active)), count(max(weir.Overshoot, fast.Overshoot)),
				ratio(fast.Utilization),
			})
		}
		m.table(t)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// latencies compares round-trip times.
func (m *measurement) latencies() func() {
	times := []struct {
		rtt  time.Duration
		said float64
	}{{0, 0.962}, {5 * time.Millisecond, 0.960}, {20 * time.Millisecond, 0.955}, {50 * time.Millisecond, 0.949}}
	type runs struct{ weir, other func() Result }
	var all []runs
	for _, c := range times {
		scenario := func(model Model) Scenario {
			s := m.fleet(model, 64)
			s.Params.Rates = []limiter.Rate{{Limit: limit, Window: limiter.Second}}
			s.Load.Rate = 3 * limit
			s.Network.RTT, s.Network.Jitter = c.rtt, c.rtt/2
			return s
		}
		all = append(all, runs{
			m.play(scenario(Weir("weir", adaptive))),
			m.batch.add(scenario(AllOrNothing("all or nothing", lot, false))),
		})
	}
	return func() {
		t := Table{
			Title: "Latency",
			Notes: []string{"64 holders, 1,000 a second, three times the load, a jitter of half the round-trip time."},
			Head:  []string{"round trip", "published U", "all or nothing U", "**Weir U**", "all or nothing trips", "**Weir trips**", "**Weir Δ**"},
		}
		for i, c := range times {
			weir, other := all[i].weir(), all[i].other()
			t.Rows = append(t.Rows, []string{
				c.rtt.String(), ratio(c.said), ratio(other.Utilization), ratio(weir.Utilization),
				whole(other.RoundTrips), whole(weir.RoundTrips), count(weir.Overshoot),
			})
		}
		m.table(t)
	}
}

// partitions cuts a quarter of a fleet off.
func (m *measurement) partitions() func() {
	const n, cut = 64, 16
	share := adaptive
	share.OnUnavailable = twotier.LocalShare
	models := []struct {
		name  string
		bound int64
		Model
	}{
		{"all or nothing", 0, AllOrNothing("all or nothing", lot, false)},
		{"Weir, Deny", 0, Weir("deny", adaptive)},
		{"Weir, LocalShare", cut * (limit / n), Weir("share", share)},
	}
	type runs struct{ whole, parted func() Result }
	var all []runs
	for _, c := range models {
		scenario := func() Scenario {
			s := m.fleet(c.Model, n)
			s.Params.Rates = []limiter.Rate{{Limit: limit, Window: limiter.Second}}
			s.Load.Rate, s.Windows, s.Warm = 3*limit, 20, 0
			return s
		}
		parted := scenario()
		parted.Faults.Partitions = []Partition{{From: 5 * time.Second, To: 13 * time.Second, First: 0, Last: cut - 1}}
		add := m.batch.add
		if c.bound == 0 {
			add = m.play
		}
		all = append(all, runs{add(scenario()), add(parted)})
	}
	return func() {
		t := Table{
			Title: "Partition",
			Notes: []string{
				"64 holders, 1,000 a second, three times the load, 20 windows; 16 holders are cut off in 8 of them.",
				"Published: the cut-off holders admit 6160 without and 4020 with the partition, U goes from 0.952 to 0.938, Δ is 0.",
				"With LocalShare a cut-off holder admits its 64th part by itself, so while others are served the bound is the limit",
				"and 16 parts of 15 units.",
			},
			Head: []string{"", "cut-off admit, whole", "cut-off admit, parted", "U, whole", "U, parted", "Δ, parted", "bound of Δ"},
		}
		for i, c := range models {
			whole, parted := all[i].whole(), all[i].parted()
			t.Rows = append(t.Rows, []string{
				c.name, count(sum(whole.ByHolder[:cut])), count(sum(parted.ByHolder[:cut])),
				ratio(min(1, whole.Utilization)), ratio(min(1, parted.Utilization)), count(parted.Overshoot), count(c.bound),
			})
		}
		m.table(t)
	}
}

func sum(list []int64) (total int64) {
	for _, v := range list {
		total += v
	}
	return total
}

// comparison is the published comparison of modes on a skewed load.
func (m *measurement) comparison() func() {
	// One of five holders has 76 % of the load, 102 a window: so the static split uses what
	// was published.
	share := []float64{0.76, 0.06, 0.06, 0.06, 0.06}
	strict, predictive := adaptive, adaptive
	strict.Mode = twotier.Strict
	predictive.Size.Type = twotier.Predictive
	rows := []struct {
		name  string
		said  [3]float64 // trips, utilization, overshoot; -1 is unsaid
		keeps bool
		Model
	}{
		{"static", [3]float64{0, 0.446, 0}, false, Static()},
		{"all or nothing, carry-over 5", [3]float64{-1, -1, 10}, false, AllOrNothing("", 5, true)},
		{"all or nothing, carry-over 10", [3]float64{-1, -1, 28}, false, AllOrNothing("", 10, true)},
		{"all or nothing, carry-over 20", [3]float64{-1, -1, 38}, false, AllOrNothing("", 20, true)},
		{"all or nothing, coupled 5", [3]float64{17178, 0.955, 0}, false, AllOrNothing("", 5, false)},
		{"all or nothing, coupled 10", [3]float64{17039, 0.864, 0}, false, AllOrNothing("", 10, false)},
		{"all or nothing, coupled 20", [3]float64{33702, 0.446, 0}, false, AllOrNothing("", 20, false)},
		{"all or nothing, coupled and adaptive", [3]float64{12731, 0.962, 0}, false, Model{}},
		{"Weir, strict", [3]float64{51186, 1, 0}, true, Weir("strict", strict)},
		{"**Weir, adaptive**", [3]float64{-1, -1, -1}, true, Weir("adaptive", adaptive)},
		{"**Weir, predictive**", [3]float64{-1, -1, -1}, true, Weir("predictive", predictive)},
	}
	results := make([]func() Result, len(rows))
	const windows = 500
	played := min(windows, 10*m.effort.Windows)
	for i, c := range rows {
		if c.start == nil {
			continue
		}
		s := m.fleet(c.Model, len(share))
		s.Params.Rates = []limiter.Rate{{Limit: 100, Window: limiter.Second}}
		s.Load = Load{Rate: 102, Share: share}
		s.Windows, s.Warm = played+1, 0
		results[i] = m.batch.add(s)
		if c.keeps {
			results[i] = m.play(s)
		}
	}
	return func() {
		t := Table{
			Title: "Modes",
			Notes: []string{
				"5 holders, limit 100, 500 windows, a load of 102 a window, 76 % of it at one holder (the published skew is not",
				"known; this one gives the published figure of the static split). Published figures and ours; round trips in all.",
			},
			Head: []string{"", "published trips", "trips", "published U", "U", "published Δ", "Δ"},
		}
		for i, c := range rows {
			row := []string{c.name, published(c.said[0], whole), "–", published(c.said[1], ratio), "–", published(c.said[2], whole), "–"}
			if results[i] != nil {
				r := results[i]()
				row[2], row[4], row[6] = whole(windows*r.RoundTrips), ratio(r.Utilization), count(r.Overshoot)
			}
			t.Rows = append(t.Rows, row)
		}
		m.table(t)
	}
}

// storms tries to break every promise.
func (m *measurement) storms() func() {
	windows := []limiter.Rate{{Limit: 200, Window: 200 * limiter.Millisecond}}
	predictive, early, carried := adaptive, adaptive, adaptive
	predictive.Size.Type = twotier.Predictive
	early.LowWater = 5
	carried.Expiry = twotier.CarryOver
	rows := []struct {
		name  string
		keeps bool
		Model
		limiter.Params
		clocks      bool // are set
		controllers int
	}{
		{"fixed window, adaptive", true, Weir("", adaptive), limiter.Params{}, false, 0},
		{"fixed window, predictive", true, Weir("", predictive), limiter.Params{}, false, 0},
		{"fixed window, fetched early", true, Weir("", early), limiter.Params{}, false, 0},
		{"token bucket, 20 ms", true, Weir("", adaptive), limiter.Params{Algorithm: limiter.TokenBucket, Lifetime: 20 * limiter.Millisecond}, false, 0},
		{"GCRA, 40 ms", true, Weir("", adaptive), limiter.Params{Algorithm: limiter.GCRA, Lifetime: 40 * limiter.Millisecond}, false, 0},
		{"sliding log, 20 ms", true, Weir("", adaptive), limiter.Params{Algorithm: limiter.SlidingLog, Lifetime: 20 * limiter.Millisecond}, false, 0},
		{"sliding window, 20 ms", true, Weir("", adaptive), limiter.Params{Algorithm: limiter.SlidingWindow, Buckets: 10, Lifetime: 20 * limiter.Millisecond}, false, 0},
		{"fixed window, carried over", false, Weir("", carried), limiter.Params{}, false, 0},
		{"all or nothing, carried over", false, AllOrNothing("", lot, true), limiter.Params{}, false, 0},
		{"fixed window, a server's clock is set", true, Weir("", adaptive), limiter.Params{}, true, 0},
		{"fixed window, controllers' clocks are set", true, Weir("", adaptive), limiter.Params{}, true, 3},
	}
	results := make([][]func() Result, len(rows))
	for i, c := range rows {
		c.Generation, c.Rates = 1, windows
		for seed := range uint64(m.effort.Seeds) {
			s := Storm(seed, c.Model, c.Params)
			if c.clocks {
				s = StormOfClocks(seed, c.Model, c.Params, c.controllers)
			}
			if c.keeps {
				results[i] = append(results[i], m.play(s))
			} else {
				results[i] = append(results[i], m.batch.add(s))
			}
		}
	}
	return func() {
		t := Table{
			Title: "Storms",
			Notes: []string{
				"Seeded runs of 2 to 10 holders and 20 windows of 200 units in which messages are lost, stalled and reordered,",
				"clocks are off by an hour and drift by 200 ppm against each other, holders are cut off and crash, the store crashes",
				"with or without its memory, and limits are edited. Each node has a clock of its own. In the last rows the time of day",
				"is also set on nodes: on that of a server, while its counts are there or while they are lost, or on those of three",
				"controllers whose leader crashes, ends in order or does not reach the API server. There a window is",
				"one number of the store's, which no clock may bring back.",
			},
			Head: []string{"", "runs", "admitted", "runs with Δ > 0", "largest Δ"},
		}
		for i, c := range rows {
			var admittedUnits, broken, largest int64
			for _, result := range results[i] {
				r := result()
				admittedUnits += r.Admitted
				broken += int64(btoi(r.Overshoot > 0))
				largest = max(largest, r.Overshoot)
			}
			t.Rows = append(t.Rows, []string{c.name, fmt.Sprint(len(results[i])), count(admittedUnits), count(broken), count(largest)})
		}
		m.table(t)
	}
}
