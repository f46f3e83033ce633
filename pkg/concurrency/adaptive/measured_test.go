package adaptive

import (
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestWindowsJudgeTheBaseline shows windows of one latency each, a second apart.
func TestWindowsJudgeTheBaseline(t *testing.T) {
	const s = limiter.Second
	for name, tc := range map[string]struct {
		found       limiter.Micros // what was measured before at instant 0; 0 for nothing
		windows     []limiter.Micros
		want        limiter.Micros
		unconfirmed limiter.Micros
		unfounded   bool
	}{
		"the first is the baseline":                   {0, []limiter.Micros{100}, 100, 0, true},
		"a lower one takes it half of the way":        {0, []limiter.Micros{100, 80}, 90, 0, true},
		"a little more shows it":                      {100, []limiter.Micros{125}, 100, 0, false},
		"more does not":                               {100, []limiter.Micros{126, 126, 126}, 100, 3 * s, false},
		"and one that does confirms it again":         {100, []limiter.Micros{126, 126, 101}, 100, 0, false},
		"a little less is what was measured":          {100, []limiter.Micros{61}, 80, 0, false},
		"much less is not":                            {100, []limiter.Micros{57}, 78, 0, true},
		"nothing is doubted before there is anything": {0, nil, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			var m measured
			if tc.found > 0 {
				m.adopt(0, tc.found)
			}
			for i, latency := range tc.windows {
				for range windowSamples {
					m.observe(limiter.Instant(i+1)*limiter.Instant(s), latency)
				}
			}
			if m.latency != tc.want || m.unconfirmed() != tc.unconfirmed || m.unfounded() != tc.unfounded {
				t.Errorf("baseline %d, unconfirmed for %d, unfounded %v; want %d, %d, %v",
					m.latency, m.unconfirmed(), m.unfounded(), tc.want, tc.unconfirmed, tc.unfounded)
			}
		})
	}
}

// TestABaselineIsKnownBeforeItsFirstWindowEnds serves the law from the first sample.
func TestABaselineIsKnownBeforeItsFirstWindowEnds(t *testing.T) {
	var m measured
	for _, latency := range []limiter.Micros{10, 20, 60} {
		m.observe(1, latency)
	}
	if m.latency != 30 {
		t.Errorf("baseline is %d, want the mean of three", m.latency)
	}
}
