package keys

// A Use is what a region used of its slice of one key: units of each window that it may hand
// on without asking, and that no other region is granted. The zero Use is of nothing. It is
// a value.
//
// A Use may not be forgotten while its window is open: the slice would be used twice.
type Use struct {
	Index int64 // of the window
	Units int64
}

// Take hands on units of a slice of that many in the window that surely is open: 0, or from
// low to want. Of windows before it hands on none.
func (u Use) Take(index, slice, low, want int64) (Use, int64) {
	switch {
	case index < u.Index:
		return u, 0
	case index > u.Index:
		u = Use{Index: index}
	}
	units := min(want, slice-u.Units)
	if units < low {
		return u, 0
	}
	u.Units += units
	return u, units
}
