package main

import "fmt"

// summarize says how the windows went that were under load from start to end.
func (d *policyShow) summarize(closed []window) {
	var whole, bounded, over, measured int
	var sum float64
	for i := range closed {
		w := &closed[i]
		if !w.whole {
			continue
		}
		whole++
		if n, ok := w.overshoot(); ok {
			bounded++
			if n > 0 {
				over++
			}
		}
		if percent, ok := w.unused(); ok {
			measured++
			sum += percent
		}
	}
	fmt.Fprintln(d.out)
	if whole == 0 {
		fmt.Fprintln(d.out, "No whole window passed; let the demo run a little longer.")
		return
	}
	fmt.Fprintf(d.out, "Whole windows, counted at the application: %d; over the limit: %d.\n", whole, over)
	if bounded < whole {
		fmt.Fprintf(d.out, "Without a bound that the application could check: %d.\n", whole-bounded)
	}
	if measured > 0 {
		fmt.Fprintf(d.out, "Of the budget, %.2f%% was not used although it was asked for (mean of %d windows).\n", sum/float64(measured), measured)
	}
}
