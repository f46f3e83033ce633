package limiter_test

import (
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// away is an absence of holders from 1 s until 32.5 s. One in four is back at 12.5 s and
// another at 22.5 s.
var away = limiter.Absence{
	From: limiter.Instant(limiter.Second), Until: limiter.Instant(32500 * limiter.Millisecond),
	Back: []limiter.Shares{{Of: 4, At: []limiter.Instant{limiter.Instant(12500 * limiter.Millisecond), limiter.Instant(22500 * limiter.Millisecond)}}},
}

// promised is an absence from 1 s on that is over at 12.5 s, when the last of four was back.
// The promise of one is over at 30 s, and it makes another one at 41 s. At 90 s all of them
// act as they always do.
var promised = limiter.Absence{
	From: limiter.Instant(limiter.Second), Until: limiter.Instant(90 * limiter.Second), Whole: limiter.Instant(12500 * limiter.Millisecond),
	Back:  []limiter.Shares{{Of: 4, At: []limiter.Instant{limiter.Instant(12500 * limiter.Millisecond)}}},
	Lapse: []limiter.Shares{{Of: 4, At: []limiter.Instant{limiter.Instant(30 * limiter.Second)}}},
	Again: []limiter.Shares{{Of: 4, At: []limiter.Instant{limiter.Instant(41 * limiter.Second)}}},
}

// granted returns what is granted of all that is wanted at each of the instants, in seconds.
func granted(t *testing.T, p limiter.Params, absence limiter.Absence, tenant string, at ...int64) (got []int64) {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	var s limiter.State
	for _, second := range at {
		var res limiter.Result
		s, res = p.Step(s, limiter.Instant(second)*limiter.Instant(limiter.Second), limiter.Command{
			Op: limiter.Take, Min: 1, Want: 1000, Tenant: tenant, Memory: limiter.Memory{Absences: []limiter.Absence{absence}},
		})
		if res.Granted == 0 && res.RetryAfter <= 0 {
			t.Errorf("at %d s: %+v, want when to come back", second, res)
		}
		got = append(got, res.Granted)
	}
	return got
}

func TestAWindowGrantsTheSharesOfHoldersThatAreBack(t *testing.T) {
	ten := limiter.Rate{Limit: 100, Window: 10 * limiter.Second}
	twenty := limiter.Rate{Limit: 100, Window: 20 * limiter.Second}
	for name, tc := range map[string]struct {
		params limiter.Params
		tenant string
		at     []int64
		want   []int64
	}{
		"fixed window": {
			params: limiter.Params{Rates: []limiter.Rate{ten}},
			at:     []int64{0, 10, 20, 30, 40}, want: []int64{100, 0, 25, 50, 100},
		},
		"a share is rounded down": {
			params: limiter.Params{Rates: []limiter.Rate{{Limit: 7, Window: 10 * limiter.Second}}},
			at:     []int64{20, 30, 40}, want: []int64{1, 3, 7},
		},
		"of two rates the one with less": {
			params: limiter.Params{Rates: []limiter.Rate{ten, twenty}},
			at:     []int64{20, 40}, want: []int64{25, 100},
		},
		"of any rate the one with more": {
			params: limiter.Params{Any: true, Rates: []limiter.Rate{ten, {Limit: 400, Window: 20 * limiter.Second}}},
			at:     []int64{20, 40}, want: []int64{100, 400},
		},
		"tenants have it together": {
			params: limiter.Params{Rates: []limiter.Rate{ten}, Fairness: limiter.Fairness{Default: 1}},
			tenant: "gold", at: []int64{20, 40}, want: []int64{25, 100},
		},
		"a sliding log, once the window of the return has ended for that long": {
			params: limiter.Params{Algorithm: limiter.SlidingLog, Rates: []limiter.Rate{ten}},
			at:     []int64{0, 10, 20, 30, 39, 40, 50}, want: []int64{100, 0, 0, 25, 0, 50, 100},
		},
		"a bucket, by what flows in": {
			params: limiter.Params{Algorithm: limiter.TokenBucket, Rates: []limiter.Rate{{Limit: 100, Window: 10 * limiter.Second, Burst: 100}}},
			at:     []int64{0, 10, 20, 24, 28, 30, 34, 40, 45}, want: []int64{100, 0, 0, 10, 10, 0, 20, 0, 50},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := granted(t, tc.params, away, tc.tenant, tc.at...)
			for i := range got {
				if got[i] != tc.want[i] {
					t.Errorf("at %v s granted %v, want %v", tc.at, got, tc.want)
					break
				}
			}
		})
	}
}

// TestAShareIsNotGrantedWhoseHolderPromisesNothing: of a window that begins when its promise
// is over, and until a window begins after another one was made.
func TestAShareIsNotGrantedWhoseHolderPromisesNothing(t *testing.T) {
	ten := limiter.Rate{Limit: 100, Window: 10 * limiter.Second}
	for name, tc := range map[string]struct {
		params limiter.Params
		at     []int64
		want   []int64
	}{
		"fixed window": {
			params: limiter.Params{Rates: []limiter.Rate{ten}},
			at:     []int64{10, 20, 30, 40, 50}, want: []int64{0, 100, 75, 75, 100},
		},
		"what is not granted is rounded up": {
			params: limiter.Params{Rates: []limiter.Rate{{Limit: 7, Window: 10 * limiter.Second}}},
			at:     []int64{20, 30, 50}, want: []int64{7, 5, 7},
		},
		"a sliding log": {
			params: limiter.Params{Algorithm: limiter.SlidingLog, Rates: []limiter.Rate{ten}},
			at:     []int64{20, 30, 40, 50, 60}, want: []int64{0, 75, 75, 75, 100},
		},
		"a bucket, by what flows in": {
			params: limiter.Params{Algorithm: limiter.TokenBucket, Rates: []limiter.Rate{{Limit: 100, Window: 10 * limiter.Second, Burst: 100}}},
			at:     []int64{20, 24, 30, 34, 38, 50, 54, 60}, want: []int64{0, 40, 0, 29, 30, 0, 40, 60},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := granted(t, tc.params, promised, "", tc.at...)
			for i := range got {
				if got[i] != tc.want[i] {
					t.Errorf("at %v s granted %v, want %v", tc.at, got, tc.want)
					break
				}
			}
		})
	}
}
