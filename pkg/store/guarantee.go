package store

// Grade says how firmly a store holds that a window never grants more than its
// limit.
type Grade string

// The grades, from the firmest.
const (
	Hard                 Grade = "Hard"                 // in every case
	HardExceptSplitBrain Grade = "HardExceptSplitBrain" // unless two primaries serve at once
	BestEffort           Grade = "BestEffort"           // the store may forget single counters
)

// A Guarantee is a grade and, unless it is Hard, the reason in a sentence that
// names the cure.
type Guarantee struct {
	Grade  Grade
	Reason string
}

// Weaker returns the one with the lower grade, g when they are equal.
func (g Guarantee) Weaker(o Guarantee) Guarantee {
	if o.Grade.rank() > g.Grade.rank() {
		return o
	}
	return g
}

func (g Grade) rank() int {
	switch g {
	case Hard:
		return 0
	case HardExceptSplitBrain:
		return 1
	default:
		return 2
	}
}
