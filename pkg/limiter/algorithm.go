package limiter

import "fmt"

// An Algorithm says what a rate promises.
type Algorithm uint8

// The algorithms. Three machines serve them: windows, sliding sums and buckets.
const (
	// FixedWindow admits at most Limit in each aligned window. With an offset or
	// calendar months it is a quota.
	FixedWindow Algorithm = iota
	// SlidingWindow admits at most Limit in every interval of length Window. It
	// counts in Params.Buckets parts of the window and forgets a part when all of
	// it is older than the window, so it may admit one part late, never early.
	SlidingWindow
	// SlidingLog is SlidingWindow with the exact instant of each grant. It counts a
	// limit above MaxLog in MaxLog parts.
	SlidingLog
	// TokenBucket admits at most Burst + Limit·x/Window in every interval of
	// length x (Turner 1986, RFC 2697).
	TokenBucket
	// GCRA admits what TokenBucket does: the two are the same machine seen from the
	// tokens left and from the theoretical arrival time (ITU-T I.371, annex A).
	GCRA
	// LeakyBucket is a queue that lets Limit per Window out, evenly: a grant says
	// how long its last unit has to wait, and what would wait longer than
	// Params.MaxDelay is refused (leaky bucket as a queue, Turner 1986). It has one
	// rate, and takes no returns.
	LeakyBucket
)

var algorithmNames = [...]string{
	FixedWindow: "FixedWindow", SlidingWindow: "SlidingWindow", SlidingLog: "SlidingLog",
	TokenBucket: "TokenBucket", GCRA: "GCRA", LeakyBucket: "LeakyBucket",
}

// String returns the algorithm's name, its number when it has none.
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return fmt.Sprintf("Algorithm(%d)", uint8(a))
}

// WindowCoupled reports whether a grant dies with the windows that gave it. Grants
// of the others are time-coupled: they die Params.Lifetime after they were made.
func (a Algorithm) WindowCoupled() bool { return a == FixedWindow }

// A machine is how an algorithm keeps its count.
type machine uint8

const (
	windowMachine machine = iota
	slidingMachine
	bucketMachine
)

func (a Algorithm) machine() machine {
	switch a {
	case FixedWindow:
		return windowMachine
	case SlidingWindow, SlidingLog:
		return slidingMachine
	default:
		return bucketMachine
	}
}
