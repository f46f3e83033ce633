package main

import "testing"

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
