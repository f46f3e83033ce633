package main

import "fmt"

// keyTable makes the table of a case: the first service is the one that the others are set
// beside, the second the one that has goals.
func keyTable(c keyCase, all []*service, turns [][]keyed) *table {
	where := "The client that asks shares the processors with them."
	if c.apart {
		where = "A service and its Redis have one processor, and the client that asks has the others, so that the service is what the rate depends on."
	}
	t := &table{
		title: "Redis, " + c.name,
		note: fmt.Sprintf("%d processes of each service over a Redis of its own, %d calls of Envoy's always under way at each, %s a second for each key. "+
			"The services take turns. %s Processor time is that of the processes and of their Redis, and beside it that of the client; commands are those that Redis counts, in scripts too. "+
			"Admitted is the most of one key in one second, counting requests that were sent and answered in it.", fleet, callsEach, grouped(c.limit), where),
		head: []string{
			"", "decisions/s", "× " + all[0].name, "95 %", "processor µs", "×", "95 %", "of Redis", "client µs", "commands in Redis", "p50 µs", "p99 µs", "admitted", "refused", "",
		},
	}
	of := func(i int, f func(keyed) float64) []float64 {
		out := make([]float64, len(turns[i]))
		for j, turn := range turns[i] {
			out[j] = f(turn)
		}
		return out
	}
	mid := func(v []float64) float64 {
		m, _, _ := median(v)
		return m
	}
	ns := func(k keyed) float64 { return k.ns }
	processor := func(k keyed) float64 { return k.processor }
	commands := func(k keyed) float64 { return k.commands }
	for i, s := range all {
		faster, fLow, fHigh := median(quotients(of(0, ns), of(i, ns)))
		cost, cLow, cHigh := median(quotients(of(i, processor), of(0, processor)))
		most := int64(0)
		for _, turn := range turns[i] {
			most = max(most, turn.most)
		}
		verdict := ""
		if i == 1 {
			verdict = fmt.Sprintf("decisions ≥ %g ×: %s", c.goal, met(faster >= c.goal))
			if c.cheaper > 0 {
				verdict += fmt.Sprintf(", processor ≤ %g ×: %s", c.cheaper, met(cost <= c.cheaper))
			}
			verdict += fmt.Sprintf(", commands ≤ %g: %s", mostPerKey, met(mid(of(i, commands)) <= mostPerKey))
		}
		t.add(s.name, fmt.Sprintf("%.0f", 1e9/mid(of(i, ns))), fmt.Sprintf("%.2f", faster), fmt.Sprintf("%.2f–%.2f", fLow, fHigh),
			micros(mid(of(i, processor))), fmt.Sprintf("%.2f", cost), fmt.Sprintf("%.2f–%.2f", cLow, cHigh),
			micros(mid(of(i, func(k keyed) float64 { return k.store }))), micros(mid(of(i, func(k keyed) float64 { return k.client }))), fmt.Sprintf("%.3f", mid(of(i, commands))), micros(mid(of(i, func(k keyed) float64 { return k.p50 }))),
			micros(mid(of(i, func(k keyed) float64 { return k.p99 }))), fmt.Sprintf("%s of %s", grouped(most), grouped(c.limit)),
			fmt.Sprintf("%.1f %%", 100*mid(of(i, func(k keyed) float64 { return k.refused }))), verdict)
	}
	return t
}

// grouped writes a number with its thousands apart.
func grouped(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
