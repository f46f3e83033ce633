package main

import (
	"context"
	"fmt"
	"maps"
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
	admitted map[int64]int64 // by the window that they surely were in
	doubtful map[int64]int64 // so near to its end, by the window before
}

// nearEnd is how near to the end of a window a decision may be charged to another: the
// store's clock is the machine's, but for what a leader corrects it by.
const nearEnd = 20 * time.Millisecond

// startLoad begins to ask all sidecars.
func (f *sidecars) startLoad(ctx context.Context, of string, limit int64) *load {
	l := &load{limit: limit, admitted: map[int64]int64{}, doubtful: map[int64]int64{}}
	ctx, l.cancel = context.WithCancel(ctx)
	for _, s := range f.all {
		l.running.Go(func() {
			sleep(ctx, time.Duration(rand.Int64N(int64(time.Second/perSidecar))))
			ticks := time.NewTicker(time.Second / perSidecar)
			defer ticks.Stop()
			for ctx.Err() == nil {
				began := time.Now()
				if s.check(ctx, of) {
					l.count(began, time.Now())
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
func (l *load) count(from, until time.Time) {
	const length = windowLength * int64(time.Second)
	first, last := from.Add(-nearEnd).UnixNano()/length, until.Add(nearEnd).UnixNano()/length
	l.mu.Lock()
	defer l.mu.Unlock()
	if first == last {
		l.admitted[first]++
	} else {
		l.doubtful[first]++
	}
}

// over returns what was admitted beyond the limit in all windows.
func (l *load) over() (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, admitted := range l.admitted {
		n += max(0, admitted-l.limit)
	}
	return n
}

// text says what each window admitted.
func (l *load) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var parts []string
	var doubtful int64
	for _, w := range slices.Sorted(maps.Keys(l.admitted)) {
		parts = append(parts, count(int(l.admitted[w])))
		doubtful += l.doubtful[w]
	}
	return fmt.Sprintf("Admitted in the windows of %d s from before the hand-over to after the crash, of a limit of %s: %s. "+
		"%s more, within %s of the end of a window, are in none of these.",
		windowLength, count(int(l.limit)), strings.Join(parts, ", "), count(int(doubtful)), nearEnd)
}

func (l *load) stop() {
	l.cancel()
	l.running.Wait()
}
