package quality

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
)

var output = flag.String("runs", "", "write the runs as JSON to this `file`")

// TestTripwire runs every contender under every load, and holds Weir to what it says.
func TestTripwire(t *testing.T) {
	var runs []Run
	for _, l := range loads() {
		for _, c := range contenders {
			if c.name == Unlimited && l.Processes > 1 {
				continue // they make no difference to each other
			}
			t.Run(fmt.Sprintf("%s/%s/%d", c.name, l.Name, l.Processes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := run(c.name, c.make(l.Processes), l, 1)
					runs = append(runs, r)
					if c.name == Weir {
						check(t, r)
					}
				})
			})
		}
	}
	if *output == "" {
		return
	}
	data, err := json.Marshal(runs)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*output, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// check holds a fleet to its limit, and to serving most of the backend's capacity in time.
func check(t *testing.T, r Run) {
	t.Helper()
	if r.Exceeded > 0 {
		t.Errorf("%d more were in flight than the limit", r.Exceeded)
	}
	for i, p := range r.Phases {
		if possible := min(r.Load.PerSecond, threads/p.Service.Seconds()); p.Goodput < 0.8*possible {
			t.Errorf("phase %d: served %.0f/s in time, of %.0f", i, p.Goodput, possible)
		}
	}
}

// loads overload the backend in every phase, or only in the slow one.
func loads() []Load {
	capacity := threads / fast.Seconds()
	var all []Load
	for _, part := range []float64{1.7, 0.8} {
		for _, n := range []int{1, 4, 16} {
			all = append(all, Load{fmt.Sprintf("%.1f × capacity", part), part * capacity, n})
		}
	}
	return all
}
