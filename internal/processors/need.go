package processors

import "time"

// A need is how many processors a program needs, by what it used of late. It is at most most.
type need struct {
	most, now int
	calm      int // looks in a row in which fewer would have done
}

const (
	// full is the part of its processors beyond which a program gets more.
	full = 0.5
	// ample is the part of its processors, without the last one, up to which that is not needed.
	ample = 0.3
	// calmLooks is how many looks in a row have to find so before it goes.
	calmLooks = 50
	// quiet is the part below which the next look takes place later.
	quiet = 0.25

	often, seldom = 100 * time.Millisecond, time.Second
)

// next takes note of how many processors were used on average since the last look, and returns
// after how long to look again. More than are there may be needed by far, so their number doubles.
func (n *need) next(used float64) time.Duration {
	have := float64(n.now)
	switch {
	case used > full*have:
		n.now, n.calm = min(2*n.now, n.most), 0
	case n.now > 1 && used <= ample*(have-1):
		if n.calm++; n.calm >= calmLooks {
			n.now, n.calm = n.now-1, 0
		}
	default:
		n.calm = 0
	}
	if n.now == 1 && used <= quiet {
		return seldom
	}
	return often
}
