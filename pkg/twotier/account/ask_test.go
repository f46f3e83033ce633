package account

import (
	"slices"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// alone lets one process ask for each unit of n in a second, by the rules, and returns
// what its takes wanted and how many units were admitted.
func alone(r *Rules, p limiter.Params, a State, s limiter.State, second, n, holders int64) (State, limiter.State, []int64, int64) {
	var wants []int64
	var admitted int64
	for i := range n {
		at := limiter.Instant(second*int64(limiter.Second) + i)
		now := int64(at) * microsecond
		next, outcome := r.Decide(a, now, 1)
		if outcome == Undecided {
			take := r.Ask(next, p, now, 1, 1, holders)
			var res limiter.Result
			s, res = p.Step(s, at, take)
			next, _ = r.Settle(next, now, take, Reply{Result: res, Sent: now, Received: now})
			wants = append(wants, take.Want)
			next, outcome = r.Decide(next, now, 1)
		}
		if a = next; outcome == Admitted {
			admitted++
		}
	}
	return a, s, wants, admitted
}

// TestLeasesGrowWhileTheHoldersAreNotKnown: a process that may be one of many begins with a
// part, and one that is alone soon has all there is.
func TestLeasesGrowWhileTheHoldersAreNotKnown(t *testing.T) {
	windows := limiter.Params{Rates: []limiter.Rate{{Limit: 100, Window: limiter.Second}}}
	bucket := limiter.Params{
		Algorithm: limiter.TokenBucket, Lifetime: 200 * limiter.Millisecond, Rates: []limiter.Rate{{Limit: 10, Window: limiter.Second, Burst: 100}},
	}
	for name, tc := range map[string]struct {
		params  limiter.Params
		learns  bool
		batch   int64
		holders int64
		first   []int64 // wanted in the first second
		later   int64   // wanted at least in the one after
	}{
		"one that learns":               {windows, true, 100, 0, []int64{10, 10, 20, 40, 80}, 100},
		"from a small batch":            {windows, true, 4, 0, slices.Repeat([]int64{4}, 25), 4},
		"a fixed batch":                 {windows, false, 60, 0, []int64{10, 60, 60}, 60},
		"a bucket":                      {bucket, true, 100, 0, []int64{10, 10, 20, 40, 80}, 90},
		"a bucket, fixed":               {bucket, false, 60, 0, []int64{10, 60, 60}, 60},
		"one that is known to be alone": {windows, true, 100, 1, []int64{100}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			const offered = 98 // a bucket has as much for leases that live for a while
			r := NewRules(Config{Params: tc.params, Leases: true, Learns: tc.learns, Batch: tc.batch})
			a, s, wants, admitted := alone(r, tc.params, r.Open(), limiter.State{}, 7, offered, tc.holders)
			if !slices.Equal(wants, tc.first) || admitted != offered {
				t.Errorf("admitted %d of %d by takes that wanted %d, want all by %d", admitted, offered, wants, tc.first)
			}
			_, _, wants, _ = alone(r, tc.params, a, s, 8, 1, tc.holders)
			if len(wants) != 1 || wants[0] < tc.later {
				t.Errorf("in the second after, it wanted %d, want at least %d", wants, tc.later)
			}
		})
	}
}

// TestLeasesFollowWhatWasLearned: the little that was granted in a window that has just begun
// does not bound what a holder asks for that knows the demand.
func TestLeasesFollowWhatWasLearned(t *testing.T) {
	p := limiter.Params{Rates: []limiter.Rate{{Limit: 100, Window: limiter.Second}}}
	r := NewRules(Config{Params: p, Leases: true, Learns: true, Batch: 100})
	a, s, _, _ := alone(r, p, r.Open(), limiter.State{}, 7, 98, 0)
	a, _, _, _ = alone(r, p, a, s, 8, 1, 0) // which ends the second that is learned from
	a.Front.Credits, a.Demand = 0, 1
	if got := r.Ask(a, p, Nanos(8*limiter.Second)+1000, 1, 1, 0).Want; got < 40 {
		t.Errorf("wanted %d at a demand of 98, want at least 40", got)
	}
}
