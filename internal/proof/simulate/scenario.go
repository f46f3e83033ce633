package simulate

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A Scenario is everything a run depends on.
type Scenario struct {
	Seed    uint64
	Model   Model
	Params  limiter.Params // of the limit, valid by their Validate
	Holders int
	// Windows is the length of the run in windows of the first rate, and Warm how
	// many of them pass before utilization and round trips count. Overshoot
	// always does.
	Windows, Warm int

	// Controllers keep the counters, one after the other, when there are any; otherwise a
	// server does.
	Controllers int
	// Look is how often holders ask the server what its clock shows; 0 is never. Then
	// they are also given what others saw when they start.
	Look time.Duration

	Load    Load
	Network Network
	Clocks  Clocks
	Faults  Faults

	// weaken changes what a holder hears, to see that a broken rule is noticed.
	weaken func(r *limiter.Result, took limiter.Micros)
}

// Load is the requests of all holders together, which come at random and
// independently of each other: a Poisson process.
type Load struct {
	Rate float64 // requests a second
	// Share is each holder's part of the load; nil means equal parts. They need not
	// sum up to 1.
	Share   []float64
	MaxCost int64 // costs are even over 1 to MaxCost; 0 means 1
}

// Network is what happens to messages between a holder and the store.
type Network struct {
	RTT, Jitter time.Duration // a round trip takes RTT ± Jitter
	Loss        float64       // the probability that a message gets lost
	// Stall is the probability that a message takes Stalled longer.
	Stall   float64
	Stalled time.Duration
	Timeout time.Duration // after which a holder gives a call up
}

// Clocks says how wrong clocks are: each is off by up to Offset and gains or loses
// up to Drift, which changes every Wander.
type Clocks struct {
	Offset time.Duration
	Drift  float64
	Wander time.Duration
}

// Faults are what goes wrong, and edits.
type Faults struct {
	Partitions []Partition
	Crashes    []Crash
	Losses     []Loss
	Edits      []Edit
	Steps      []Step
	Ends       []End
}

// A Step sets the time of day on a node: the holders come first, then the server, then the
// controllers.
type Step struct {
	At, By time.Duration
	Node   int
}

// An End ends the process of a controller, which starts again after Down: in order, by a
// crash, or because for that long it does not reach the API server.
type End struct {
	At, Down   time.Duration
	Controller int
	How        Ending
}

// Ending is how a controller ends.
type Ending uint8

// The endings.
const (
	InOrder Ending = iota
	Crashed
	CutOff
)

// A Partition cuts holders First to Last off from the store.
type Partition struct {
	From, To    time.Duration
	First, Last int
}

// A Crash ends a holder, with what it holds, and starts it again after Down.
type Crash struct {
	At, Down time.Duration
	Holder   int
}

// A Loss ends the store, and starts it again after Down with no memory of what it
// granted, or, when Keeps is set, with all of it.
type Loss struct {
	At, Down time.Duration
	Keeps    bool
}

// An Edit gives the limit other parameters. Each holder learns of it some time
// within Spread.
type Edit struct {
	At, Spread time.Duration
	Params     limiter.Params
}

// A Result is what an auditor measured in a run.
type Result struct {
	// Overshoot is the most that was admitted beyond what the algorithm promises,
	// in any window or interval: Δ.
	Overshoot int64
	// Utilization is what was admitted of what could have been, over all windows.
	Utilization float64
	RoundTrips  float64 // asked of the store in a window, on average

	Offered, Admitted, Refused int64   // units
	ByHolder                   []int64 // admitted
	Events                     int64
	// Digest is a hash of everything that happened, in order.
	Digest uint64
}
