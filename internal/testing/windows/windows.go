package windows

import (
	"fmt"
	"time"
)

// At returns the start of the window of an instant. Stores align windows to multiples of their
// length since 1970, in microseconds.
func At(t time.Time, length time.Duration) time.Time {
	n := length.Microseconds()
	return time.UnixMicro(t.UnixMicro() / n * n)
}

// A Split is what the clusters of a budget admitted in one window.
type Split struct{ Hub, Member int }

// Sum returns what they admitted together.
func (s Split) Sum() int { return s.Hub + s.Member }

// A Matcher says whether a window is as wanted, and why it is not. Those of gomega are matchers.
type Matcher interface {
	Match(actual any) (success bool, err error)
	FailureMessage(actual any) string
}

// patience is how many windows are looked at.
const patience = 12

// InARow looks at window after window until n in a row are as wanted, and returns all. The error
// has what was seen of the twelve it looks at. On a machine that is short of processors a lease can come too late
// for its window, or the demand of pods and regions is learnt a window later. look checks the
// bounds that hold for every window.
func InARow[T any](n int, wanted Matcher, look func(i int) T) ([]T, error) {
	var seen []T
	row, missed := 0, ""
	for i := range patience {
		seen = append(seen, look(i))
		good, err := wanted.Match(seen[i])
		if err != nil {
			return seen, err
		}
		row++
		if !good {
			row, missed = 0, wanted.FailureMessage(seen[i])
		}
		if row == n {
			return seen, nil
		}
	}
	return seen, fmt.Errorf("of %d windows no %d in a row are as wanted: %v\nthe last that is not: %s", patience, n, seen, missed)
}
