package journals

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestTheOldestOutagesAreOne where there are more than are remembered.
func TestTheOldestOutagesAreOne(t *testing.T) {
	const month = limiter.Instant(limiter.MaxWindow)
	last := outages{Term: 2, At: 5 * month}
	for i := range limiter.Instant(maxOutages) {
		last.Gaps = append(last.Gaps, limiter.Gap{From: 6*month + 10*i, To: 6*month + 10*i + 5})
	}
	got := last.follow(3, 6*month+10*maxOutages, 6*month+10*maxOutages+9, 6*month+10*maxOutages+5).Gaps
	if len(got) != maxOutages || got[0].From != 6*month || got[0].To != 6*month+15 || got[1].From != 6*month+20 {
		t.Errorf("%d outages, the first %v; want %d, the first two as one", len(got), got[:2], maxOutages)
	}
}

func TestOutagesFollowEachOther(t *testing.T) {
	const month = limiter.Instant(limiter.MaxWindow)
	gaps := func(all ...limiter.Gap) []limiter.Gap { return all }
	for name, c := range map[string]struct {
		last   outages
		term   uint64
		served limiter.Instant
		want   []limiter.Gap
	}{
		"there is none before the first":                 {outages{}, 3, 0, nil},
		"from when the term before renewed":              {outages{Term: 2, At: 5 * month}, 3, 8 * month, gaps(limiter.Gap{From: 8 * month, To: 9 * month})},
		"from when one served, when another is unknown":  {outages{Term: 1, At: 5 * month}, 3, 8 * month, gaps(limiter.Gap{From: 5 * month, To: 9 * month})},
		"from when one served, when no Lease says more":  {outages{Term: 2, At: 5 * month}, 3, 0, gaps(limiter.Gap{From: 5 * month, To: 9 * month})},
		"those before stay while a window may look back": {outages{Term: 2, At: 5 * month, Gaps: gaps(limiter.Gap{From: 1, To: 7 * month}, limiter.Gap{From: 2, To: 7*month + 9})}, 3, 8 * month, gaps(limiter.Gap{From: 2, To: 7*month + 9}, limiter.Gap{From: 8 * month, To: 9 * month})},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.last.follow(c.term, c.served, 8*month, 9*month)
			if diff := cmp.Diff(c.want, got.Gaps); diff != "" || got.Term != c.term || got.At != 8*month {
				t.Errorf("got %+v\n%s", got, diff)
			}
		})
	}
}
