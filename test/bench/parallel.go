package main

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/limiter"
)

// parallel shows what more goroutines on one key cost, on two processors.
func parallel(show func(*table)) error {
	const goal = 1.15
	note := fmt.Sprintf("A decision shall cost at most %.2f times as much at 64 goroutines as at 2.", goal)
	reached := func(r *sweptRow, _ map[string]*sweptRow) string {
		growth := r.growth()
		return fmt.Sprintf("goal ≤ %.2f: %s", goal, judge(growth, growth, goal, 0))
	}
	show(sweep("One hot key, admitted", note, reached, func() []contender {
		return []contender{
			limitOne(), weirHandle("weir", window(limiter.MaxLimit), limiter.MaxLimit),
			xtimeOne(plenty), uberOne(), sethvargo(plenty), throttle(plenty),
		}
	}))
	return nil
}

// sweep makes a table of the costs of contenders at 1 to 64 goroutines on two processors.
// The second of them is Weir's, and reached says whether it reached its goals beside the
// others, by name.
func sweep(title, note string, reached func(*sweptRow, map[string]*sweptRow) string, contenders func() []contender) *table {
	const procs = 2
	t := &table{
		title: title + ", GOMAXPROCS 2, ns/op by number of goroutines",
		note:  note,
		head:  []string{""},
	}
	rows := map[string]*sweptRow{}
	for _, n := range []int{1, 2, 4, 8, 16, 32, 64} {
		t.head = append(t.head, fmt.Sprint(n))
		for _, f := range measure(contenders(), []string{"key"}, load{procs, n}, true) {
			if rows[f.name] == nil {
				rows[f.name] = &sweptRow{at: map[int]float64{}}
			}
			rows[f.name].add(n, f)
		}
	}
	t.head = append(t.head, "64 over 2", "allocs/op", "")
	for i, c := range contenders() {
		r, verdict := rows[c.name], ""
		if i == 1 {
			verdict = reached(r, rows)
		}
		if r.wrong && i > 0 {
			verdict = "decides otherwise!"
		}
		t.add(append(append([]string{c.name}, r.cells...), fmt.Sprintf("%.2f", r.growth()), fmt.Sprintf("%.2f", r.allocs), verdict)...)
		c.close()
	}
	return t
}

// A sweptRow is what one contender did at all numbers of goroutines.
type sweptRow struct {
	cells  []string
	at     map[int]float64 // ns by number of goroutines
	allocs float64         // the most of any
	wrong  bool
}

// growth returns how many times as much an operation costs at 64 goroutines as at 2.
func (r *sweptRow) growth() float64 { return r.at[64] / r.at[2] }

func (r *sweptRow) add(goroutines int, f figure) {
	ns, _, _ := median(f.ns)
	r.cells = append(r.cells, fmt.Sprintf("%.1f", ns))
	r.at[goroutines] = ns
	r.allocs = max(r.allocs, f.allocs)
	r.wrong = r.wrong || f.wrong
}
