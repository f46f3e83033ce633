package pool

// Ranks count the marked slots below a slot, by a binary indexed tree (Fenwick, "A
// New Data Structure for Cumulative Frequency Tables", 1994): place i, from 1, holds
// the number of marked ones among the last i&-i slots up to it. No place depends on
// one behind it, so the tree shrinks by being cut off.
type ranks []int32

// grow adds a slot that is not marked.
func (r *ranks) grow() {
	place := int32(len(*r) + 1)
	var sum int32
	for below := place - 1; below > place-place&-place; below -= below & -below {
		sum += (*r)[below-1]
	}
	*r = append(*r, sum)
}

func (r ranks) mark(slot int32, marked bool) {
	change := int32(-1)
	if marked {
		change = 1
	}
	for place := slot + 1; place <= int32(len(r)); place += place & -place {
		r[place-1] += change
	}
}

// below returns how many of the first slots are marked.
func (r ranks) below(slots int32) int64 {
	var sum int32
	for place := slots; place > 0; place -= place & -place {
		sum += r[place-1]
	}
	return int64(sum)
}
