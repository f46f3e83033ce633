package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// windowLength is that of the policies' windows, in seconds.
const windowLength = 10

// A load asks every sidecar for decisions, and counts by window what they admit.
type load struct {
	limit   int64
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	leased   map[int64]int64 // admitted by leases, by the window that they surely were in
	alone    map[int64]int64 // as many by local shares
	doubtful int64           // so near to the end of a window that it may have been in either
}

// nearEnd is how near to the end of a window a decision may be charged to another: the
// store's clock is the machine's, but for what a leader corrects it by.
const nearEnd = 20 * time.Millisecond

// startLoad begins to ask all sidecars.
func (f *sidecars) startLoad(ctx context.Context, of string, limit int64) *load {
	l := &load{limit: limit, leased: map[int64]int64{}, alone: map[int64]int64{}}
	ctx, l.cancel = context.WithCancel(ctx)
	for _, s := range f.all {
		l.running.Go(func() {
			sleep(ctx, time.Duration(rand.Int64N(int64(time.Second/perSidecar))))
			ticks := time.NewTicker(time.Second / perSidecar)
			defer ticks.Stop()
			for ctx.Err() == nil {
				began := time.Now()
				if admits, alone := s.check(ctx, of); admits {
					l.count(began, time.Now(), alone)
				}
				select {
				case <-ticks.C:
				case <-ctx.Done():
				}
			}
		})
	}
	return l
}

// count counts what was admitted between two instants.
func (l *load) count(from, until time.Time, alone bool) {
	const length = windowLength * int64(time.Second)
	first, last := from.Add(-nearEnd).UnixNano()/length, until.Add(nearEnd).UnixNano()/length
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case first != last:
		l.doubtful++
	case alone:
		l.alone[first]++
	default:
		l.leased[first]++
	}
}

// over returns what was admitted beyond the limit in all windows.
func (l *load) over() (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.windows() {
		n += max(0, l.leased[w]+l.alone[w]-l.limit)
	}
	return n
}

// wrong says which windows admitted more than the limit by leases, or by shares: those are
// never promised. Both together may be more by the shares of sidecars that the leader's
// answers reach too late.
func (l *load) wrong() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.windows() {
		if most := max(l.leased[w], l.alone[w]); most > l.limit {
			return fmt.Errorf("%d were admitted by leases and %d by shares in one window, of a limit of %d", l.leased[w], l.alone[w], l.limit)
		}
	}
	return nil
}

// windows returns those in which something was admitted; mu is held.
func (l *load) windows() []int64 {
	return slices.Compact(slices.Sorted(func(yield func(int64) bool) {
		for _, of := range []map[int64]int64{l.leased, l.alone} {
			for w := range of {
				if !yield(w) {
					return
				}
			}
		}
	}))
}

// text says what each window admitted.
func (l *load) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var parts []string
	for _, w := range l.windows() {
		parts = append(parts, fmt.Sprintf("%s + %s", count(int(l.leased[w])), count(int(l.alone[w]))))
	}
	return fmt.Sprintf("Admitted in the windows of %d s from before the hand-over to after the crash, of a limit of %s, by leases + by local shares: %s. "+
		"%s more, within %s of the end of a window, are in none of these.",
		windowLength, count(int(l.limit)), strings.Join(parts, ", "), count(int(l.doubtful)), nearEnd)
}

func (l *load) stop() {
	l.cancel()
	l.running.Wait()
}
