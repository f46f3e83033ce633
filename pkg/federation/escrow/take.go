package escrow

import "github.com/weir-dev/weir/pkg/limiter"

// take hands units on, and counts what was wanted of the window.
func (s *State) take(low, want int64) int64 {
	if !s.open() {
		return 0
	}
	s.Asked = min(s.Asked+want, limiter.MaxExact)
	units := min(want, s.remaining())
	if units < low {
		return 0
	}
	s.Taken += units
	return units
}

// putBack takes unspent units of the window back. Which term granted them does not
// matter: it is the window that they die with.
func (s *State) putBack(index, units int64) int64 {
	if !s.open() || index != s.Epoch.Index {
		return 0
	}
	units = min(units, s.Taken)
	s.Taken -= units
	return units
}
