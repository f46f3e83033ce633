package main

import "testing"

func TestJudge(t *testing.T) {
	first := budgetRow{first: true, admitted: [2]int64{0, 100}}
	full, cut := budgetRow{admitted: [2]int64{400, 100}}, budgetRow{admitted: [2]int64{300, 0}, cut: true}
	over, silent := budgetRow{admitted: [2]int64{400, 101}}, budgetRow{admitted: [2]int64{400, 0}}
	overWhileCut, overFirst := over, over
	overWhileCut.cut, overFirst.first = true, true
	for name, tc := range map[string]struct {
		rows   []budgetRow
		wanted int
		want   string
	}{
		"two whole windows":             {[]budgetRow{first, full, full}, 2, ""},
		"none":                          {nil, 2, "the time was over after 0 of 2 whole windows"},
		"one":                           {[]budgetRow{first, full}, 2, "the time was over after 1 of 2 whole windows"},
		"the first is not whole":        {[]budgetRow{first, full, cut}, 2, "the time was over after 1 of 2 whole windows"},
		"nor is one after a cut":        {[]budgetRow{full, cut, full}, 2, "the time was over after 1 of 2 whole windows"},
		"one over the limit":            {[]budgetRow{first, full, over}, 2, "the window at 00:00:00 admitted 501, more than the limit of 500"},
		"one over the limit, cut":       {[]budgetRow{full, full, overWhileCut}, 2, "the window at 00:00:00 admitted 501, more than the limit of 500"},
		"one over the limit, the first": {[]budgetRow{overFirst, full, full}, 2, "the window at 00:00:00 admitted 501, more than the limit of 500"},
		"a cluster that admits nothing": {[]budgetRow{full, silent}, 2, "the window at 00:00:00 admitted 400 in eu-west and 0 in us-east, want some in each"},
		"none are to be judged":         {[]budgetRow{over, silent}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := judge(tc.rows, tc.wanted); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("judge: %q, want %q", got, tc.want)
			}
		})
	}
}
