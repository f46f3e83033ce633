package traffic

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A pace spreads requests evenly over time and over senders. One that is drawn by lot
// begins: in a short time, not all of many have a turn.
type pace struct {
	begin, end time.Time
	every      time.Duration
	lot, each  int
}

func newPace(senders, perSecond int, length time.Duration) pace {
	begin := time.Now().Add(time.Millisecond)
	return pace{begin, begin.Add(length), time.Second / time.Duration(perSecond), rand.IntN(senders), senders}
}

// first is when the first request of sender i is due.
func (p pace) first(i int) time.Time {
	return p.begin.Add(time.Duration((i-p.lot+p.each)%p.each) * p.every)
}

// keep calls send whenever a request of sender i is due, with when it began.
func (p pace) keep(i int, send func(sent time.Time) error) error {
	for due := p.first(i); due.Before(p.end); due = due.Add(time.Duration(p.each) * p.every) {
		sent := due
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
			sent = time.Now()
		}
		if err := send(sent); err != nil {
			return err
		}
	}
	return nil
}

// together calls do for n at once, and adds up what it returns.
func together(n int, do func(i int) (int, error)) (sum int, err error) {
	each, failed := make([]int, n), make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { each[i], failed[i] = do(i) })
	}
	running.Wait()
	for _, n := range each {
		sum += n
	}
	return sum, errors.Join(failed...)
}

func sorted(took [][]time.Duration) []time.Duration {
	all := slices.Concat(took...)
	slices.Sort(all)
	return all
}

// Percentile returns the nanoseconds that as many of a thousand are not above.
func Percentile(sorted []time.Duration, perMille int) float64 {
	return float64(sorted[min(len(sorted)*perMille/1000, len(sorted)-1)])
}
