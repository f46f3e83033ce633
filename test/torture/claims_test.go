package main

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
)

func TestFalseFigures(t *testing.T) {
	truth := overshoot{least: 27, most: 30}
	for name, tc := range map[string]struct {
		c    claim
		lies int
	}{
		"the truth":                  {claim{within: "True Measured", worst: 28}, 0},
		"less":                       {claim{within: "True Measured", worst: 0}, 1},
		"less, as a lower bound":     {claim{within: "True Measured", worst: 0, atLeast: true}, 0},
		"less, and not all is known": {claim{within: "Unknown ReportsMissing", worst: 0}, 0},
		"more":                       {claim{within: "True Measured", worst: 31}, 1},
		"more, as a lower bound":     {claim{within: "True Measured", worst: 31, atLeast: true}, 1},
		"a bound that was exceeded":  {claim{within: "False BoundExceeded", worst: 28}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shop{claims: []claim{tc.c}, limits: []limitOf{{}}}
			if got := s.lies(truth, false); len(got) != tc.lies {
				t.Errorf("%d false figures %v, want %d", len(got), got, tc.lies)
			}
		})
	}
}

func TestClaimOfALowerBound(t *testing.T) {
	for completeness, want := range map[v1alpha1.Completeness]bool{v1alpha1.AtLeast: true, v1alpha1.Complete: false} {
		if got := claimOf(nil, true, "", &v1alpha1.Overshoot{Worst: new(int64), Completeness: completeness}).atLeast; got != want {
			t.Errorf("%s is a lower bound: %t", completeness, got)
		}
	}
}

func TestNothingIsJudgedBeforeThePolicyIsProgrammed(t *testing.T) {
	s := &shop{
		arrivals: map[string][]arrival{"red": {{sent: at(1)}, {sent: at(3)}, {sent: at(6)}}},
		claims:   []claim{{from: at(0)}, {from: at(2), programmed: true}, {from: at(5)}},
	}
	got := s.limited("red")
	if len(got) != 2 || !got[0].sent.Equal(at(3)) {
		t.Errorf("judged %v, want all since %s, and those of a later edit", got, at(2).Format(time.TimeOnly))
	}
	s.claims = s.claims[:1]
	if got := s.limited("red"); len(got) != 0 {
		t.Errorf("judged %v of a policy that was never in force", got)
	}
}
