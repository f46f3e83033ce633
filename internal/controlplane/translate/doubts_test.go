package translate

import (
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// TestWindowsTouched counts the windows one by one.
func TestWindowsTouched(t *testing.T) {
	for window := limiter.Micros(1); window <= 24; window++ {
		for length := limiter.Micros(1); length <= 24; length++ {
			var most int64
			for start := limiter.Micros(0); start < window*length; start += window {
				first, last := start/length, (start+window-1)/length
				most = max(most, int64(last-first)+1)
			}
			got := windowsTouched(limiter.Rate{Window: window}, limiter.Rate{Window: length})
			if got != most {
				t.Fatalf("a window of %d touches %d windows of %d, counted %d", window, got, length, most)
			}
		}
	}
}

func TestNeverBinds(t *testing.T) {
	const second, minute = limiter.Second, 60 * limiter.Second
	cases := map[string]struct {
		idle, other limiter.Rate
		want        bool
	}{
		"a long window that allows all that the short ones add up to": {
			limiter.Rate{Limit: 600, Window: minute}, limiter.Rate{Limit: 10, Window: second}, true,
		},
		"a long window that allows one less": {
			limiter.Rate{Limit: 599, Window: minute}, limiter.Rate{Limit: 10, Window: second}, false,
		},
		"a short window that allows all of the long one": {
			limiter.Rate{Limit: 10, Window: second}, limiter.Rate{Limit: 10, Window: minute}, true,
		},
		"a short window that allows one less than the long one": {
			limiter.Rate{Limit: 9, Window: second}, limiter.Rate{Limit: 10, Window: minute}, false,
		},
		"a window that straddles two of the other may see both their limits": {
			limiter.Rate{Limit: 10, Window: 2 * second}, limiter.Rate{Limit: 10, Window: 3 * second}, false,
		},
		"a window that straddles two of the other and allows both": {
			limiter.Rate{Limit: 20, Window: 2 * second}, limiter.Rate{Limit: 10, Window: 3 * second}, true,
		},
		"the largest rates do not overflow": {
			limiter.Rate{Limit: limiter.MaxLimit, Window: limiter.MaxWindow}, limiter.Rate{Limit: limiter.MaxLimit, Window: limiter.MinWindow}, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := neverBinds(policy.FixedWindow, tc.idle, tc.other); got != tc.want {
				t.Errorf("neverBinds = %v, want %v", got, tc.want)
			}
		})
	}
}
