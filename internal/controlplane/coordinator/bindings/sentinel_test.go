package bindings

import (
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestTheSentinelIsAsOldAsTheLimit, which windows of a store that may have forgotten grants depend on.
func TestTheSentinelIsAsOldAsTheLimit(t *testing.T) {
	p := limiter.Params{Rates: []limiter.Rate{{Limit: 5, Window: limiter.Second}}, Since: 7, Generation: 8}
	if got := Sentinel(p); got.Since != 7 || got.Generation != 8 || got.Rates[0].Window != limiter.Second {
		t.Errorf("the sentinel is %+v", got)
	}
}
