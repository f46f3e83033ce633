package main

import (
	"math"
	"testing"
)

// TestMedianInterval: the ranks are those of the binomial distribution (Conover, Practical
// Nonparametric Statistics, section 3.2).
func TestMedianInterval(t *testing.T) {
	for _, tc := range []struct {
		n              int
		mid, low, high float64
	}{
		{9, 5, 2, 8},
		{15, 8, 4, 12},
		{31, 16, 10, 22},
		{41, 21, 14, 28},
	} {
		v := make([]float64, tc.n)
		for i := range v {
			v[i] = float64(tc.n - i)
		}
		if mid, low, high := median(v); mid != tc.mid || low != tc.low || high != tc.high {
			t.Errorf("of %d: %g in %g–%g, want %g in %g–%g", tc.n, mid, low, high, tc.mid, tc.low, tc.high)
		}
	}
}

func TestAnIntervalMayHaveNoEnd(t *testing.T) {
	for want, a := range map[string]addition{
		"1.00 (0.50–1.50)": {ratio: 1, low: 0.5, high: 1.5},
		"1.00 (0.50–∞)":    {ratio: 1, low: 0.5, high: math.Inf(1)},
		"lost in noise":    {ratio: math.Inf(1), low: 0.5, high: math.Inf(1)},
	} {
		if got := a.String(); got != want {
			t.Errorf("it is written %q, want %q", got, want)
		}
	}
}

func TestAnAdditionIsBesideAnother(t *testing.T) {
	base := []float64{100, 200, 300, 400, 500}
	over := func(by ...float64) []float64 {
		figures := make([]float64, len(base))
		for i := range base {
			figures[i] = base[i] + by[i]
		}
		return figures
	}
	for name, tc := range map[string]struct {
		other, figures []float64
		ratio          float64
		verdict        string
	}{
		"all rounds agree":      {over(10, 10, 10, 10, 10), over(11, 11, 11, 11, 11), 1.1, "met"},
		"and miss":              {over(10, 10, 10, 10, 10), over(13, 13, 13, 13, 13), 1.3, "missed"},
		"the median reaches it": {over(10, 10, 10, 10, 10), over(5, 5, 11, 30, 30), 1.1, "met by the median only"},
		"the median misses it":  {over(10, 10, 10, 10, 10), over(5, 5, 14, 30, 30), 1.4, "missed by the median only"},
		"nothing to go by":      {over(-1, -1, -1, -1, -1), over(5, 5, 5, 5, 5), math.Inf(1), "lost in noise"},
	} {
		t.Run(name, func(t *testing.T) {
			a := additionTo(base, tc.other, tc.figures)
			if math.Abs(a.ratio-tc.ratio) > 1e-9 || a.low > a.ratio || a.high < a.ratio {
				t.Errorf("ratio %g in %g–%g, want %g", a.ratio, a.low, a.high, tc.ratio)
			}
			if got := a.reaches(1.2); got != tc.verdict {
				t.Errorf("a goal of 1.2 is %s, want %s", got, tc.verdict)
			}
		})
	}
}
