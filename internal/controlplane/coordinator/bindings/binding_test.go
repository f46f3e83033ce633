package bindings

import (
	"slices"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestUnitsOfWindowsOfAnotherLengthAreNotTheBudgets that has others now.
func TestUnitsOfWindowsOfAnotherLengthAreNotTheBudgets(t *testing.T) {
	second, day := limiter.Rate{Window: limiter.Second}, limiter.Rate{Window: limiter.Day}
	now := limiter.Instant(10 * limiter.Day)
	windows := func(rates ...limiter.Rate) (w limiter.Windows) {
		for _, r := range rates {
			w.Open[w.N] = r.WindowAt(now.Add(limiter.Day))
			w.N++
		}
		return w
	}
	d := Binding{Since: now, first: limiter.Windows{N: 2, Open: [limiter.MaxRates]limiter.OpenWindow{second.WindowAt(now), day.WindowAt(now)}}}
	for name, tc := range map[string]struct {
		of   limiter.Windows
		want []bool
	}{
		"as they are":     {windows(second, day), []bool{true, true}},
		"another of both": {windows(second, second), []bool{true, false}},
		"no longer there": {windows(day, second), []bool{false, false}},
	} {
		got := tc.of
		some := d.Owned(&got)
		for i, o := range got.Slice() {
			if (o.Index != NoWindow) != tc.want[i] || some != slices.Contains(tc.want, true) {
				t.Errorf("%s: %+v, %t", name, got, some)
			}
		}
	}
}
