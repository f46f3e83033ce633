package translate

import (
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

func TestMicros(t *testing.T) {
	cases := map[string]struct {
		given string
		want  limiter.Micros // 0: refused
	}{
		"the shortest window":             {"100ms", limiter.MinWindow},
		"the longest window":              {"744h", limiter.MaxWindow},
		"units add up":                    {"1h2m3s4ms", 3_723_004_000},
		"units in any order":              {"4ms1h", 3_600_004_000},
		"a unit twice":                    {"1s1s", 2_000_000},
		"five digits":                     {"99999ms", 99_999_000},
		"nothing":                         {"", 0},
		"no unit":                         {"10", 0},
		"a fraction":                      {"1.5s", 0},
		"a sign":                          {"-1s", 0},
		"microseconds, not in the format": {"100us", 0},
		"days, not in the format":         {"1d", 0},
		"six digits":                      {"100000ms", 0},
		"five units":                      {"1s1s1s1s1s", 0},
		"a line after it":                 {"1s\n", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := micros(tc.given)
			if got != tc.want || (err == nil) != (tc.want != 0) {
				t.Errorf("micros(%q) = %d, %v; want %d", tc.given, got, err, tc.want)
			}
		})
	}
}
