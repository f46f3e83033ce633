package main

import "fmt"

// summarize says how the windows went that were under load from start to end.
func (d *demo) summarize(closed []window) {
	var whole, served, over int
	var unused float64
	for i := range closed {
		w := &closed[i]
		if !w.whole {
			continue
		}
		whole++
		if w.overshoot() > 0 {
			over++
		}
		if w.admitted > 0 {
			served++
			unused += w.unused()
		}
	}
	fmt.Fprintln(d.out)
	if whole == 0 {
		fmt.Fprintln(d.out, "No whole window passed; let the demo run a little longer.")
		return
	}
	fmt.Fprintf(d.out, "%d whole windows, counted at the application: %d over the limit, %d not served at all.\n", whole, over, whole-served)
	if served > 0 {
		fmt.Fprintf(d.out, "Of the budget, %.2f%% was not used although it was asked for (mean of the %d served windows).\n", unused/float64(served), served)
	}
}
