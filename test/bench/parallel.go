package main

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/limiter"
)

// parallel shows what more goroutines on one key cost, on two processors.
func parallel(show func(*table)) error {
	const procs, goal = 2, 1.15
	t := &table{
		title: "One hot key, admitted, GOMAXPROCS 2, ns/op by number of goroutines",
		note:  fmt.Sprintf("A decision shall cost at most %.2f times as much at 64 goroutines as at 2.", goal),
		head:  []string{""},
	}
	numbers := []int{1, 2, 4, 8, 16, 32, 64}
	contenders := func() []contender {
		return []contender{
			limitOne(), weirHandle("weir", "key", window(limiter.MaxLimit), limiter.MaxLimit),
			xtimeOne(plenty), uberOne(), sethvargo(plenty), throttle(plenty),
		}
	}
	cells := map[string][]string{}
	at := map[string]map[int]float64{}
	for _, n := range numbers {
		t.head = append(t.head, fmt.Sprint(n))
		for _, f := range measure(contenders(), []string{"key"}, load{procs, n}, true) {
			ns, _, _ := median(f.ns)
			cells[f.name] = append(cells[f.name], fmt.Sprintf("%.1f", ns))
			if at[f.name] == nil {
				at[f.name] = map[int]float64{}
			}
			at[f.name][n] = ns
		}
	}
	t.head = append(t.head, "64 over 2", "")
	for i, c := range contenders() {
		growth, verdict := at[c.name][64]/at[c.name][2], ""
		if i == 1 {
			verdict = fmt.Sprintf("goal ≤ %.2f: %s", goal, judge(growth, growth, goal, 0))
		}
		t.add(append(append([]string{c.name}, cells[c.name]...), fmt.Sprintf("%.2f", growth), verdict)...)
		c.close()
	}
	show(t)
	return nil
}
