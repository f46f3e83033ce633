package sizing_test

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/sizing"
)

// A lease grows with the demand that windows show.
func ExampleRule() {
	rule := sizing.Rule{Low: 1, High: 1000, Start: 8, Predictive: true}
	var learned sizing.Sizer
	for range 20 { // windows
		want := rule.Lease(learned, 1)
		learned = rule.Heard(learned, want, limiter.Result{Granted: want, Remaining: 5000, Limit: 10_000}, 1)
		learned = rule.Observe(learned, 400)
	}
	fmt.Println("the first lease asked for", rule.Lease(sizing.Sizer{}, 1), "units")
	fmt.Println("a demand of about", learned.Forecast(), "is expected")
	fmt.Println("a lease for a whole window asks for", rule.Lease(learned, 1))
	fmt.Println("one for a tenth of it asks for", rule.Lease(learned, 0.1))
	// Output:
	// the first lease asked for 8 units
	// a demand of about 400 is expected
	// a lease for a whole window asks for 69
	// one for a tenth of it asks for 45
}
