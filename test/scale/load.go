package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/twotier"
)

// windowLength is that of the policies' windows, in seconds.
const windowLength = 10

// A load asks every sidecar for decisions, and counts by window what they admit. The
// window is the one that the sidecar charged: a new leader's clock may run beside that of
// the machine.
type load struct {
	limit   int64
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	leased map[int64]int64 // admitted by leases, by window
	alone  map[int64]int64 // by local shares
}

// startLoad begins to ask all sidecars, each a number of times a second.
func (f *sidecars) startLoad(ctx context.Context, of string, limit, each int64) *load {
	l := &load{limit: limit, leased: map[int64]int64{}, alone: map[int64]int64{}}
	ctx, l.cancel = context.WithCancel(ctx)
	for _, s := range f.all {
		l.running.Go(func() {
			pause := time.Second / time.Duration(each)
			sleep(ctx, time.Duration(rand.Int64N(int64(pause))))
			ticks := time.NewTicker(pause)
			defer ticks.Stop()
			for ctx.Err() == nil {
				if d, err := s.check(ctx, of); err == nil && d.Allowed {
					l.count(d)
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

// count counts a decision that admits. One that is charged to no window counts in window 0.
func (l *load) count(d twotier.Decision) {
	window := int64(0)
	if d.Windows != nil {
		window = d.Windows.Slice()[0].Index
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if d.Source == twotier.FromLocalShare {
		l.alone[window]++
	} else {
		l.leased[window]++
	}
}

// admitted returns how much was admitted in all windows.
func (l *load) admitted() (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.windows() {
		n += l.leased[w] + l.alone[w]
	}
	return n
}

// over returns what was admitted beyond the limit in all windows, and in the worst.
func (l *load) over() (all, worst int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.windows() {
		n := max(0, l.leased[w]+l.alone[w]-l.limit)
		all, worst = all+n, max(worst, n)
	}
	return all, worst
}

// wrong returns an error for a window that admitted more than the limit by leases alone,
// or by shares alone, which is never promised. Both together may admit more, by the shares of
// sidecars that the leader's answers reach too late.
func (l *load) wrong() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.windows() {
		if w == 0 {
			return fmt.Errorf("%d requests were admitted that are charged to no window", l.leased[w]+l.alone[w])
		}
		if most := max(l.leased[w], l.alone[w]); most > l.limit {
			return fmt.Errorf("%d were admitted by leases and %d by shares in one window, of a limit of %d", l.leased[w], l.alone[w], l.limit)
		}
	}
	return nil
}

// disputed returns an error when a status disagrees with what was admitted: its worst
// window is that of the load, or less when it says so, and no window was beyond its bound.
func (l *load) disputed(p *v1alpha1.RateLimitPolicy) error {
	_, worst := l.over()
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.WithinBoundCondition); c != nil && c.Status == metav1.ConditionFalse {
		return fmt.Errorf("the status says that a window was beyond its bound: %s", c.Message)
	}
	if !reportsWindow(p) {
		return errors.New("the status does not report what windows admitted")
	}
	o := p.Status.Limits[0].Overshoot
	if *o.Worst > worst || *o.Worst < worst && o.Completeness != v1alpha1.AtLeast {
		return fmt.Errorf("the worst window admitted %d beyond the limit, and the status says %d, %s", worst, *o.Worst, o.Completeness)
	}
	return nil
}

// reportsWindow reports whether a status has a worst window.
func reportsWindow(p *v1alpha1.RateLimitPolicy) bool {
	return len(p.Status.Limits) > 0 && p.Status.Limits[0].Overshoot != nil && p.Status.Limits[0].Overshoot.Worst != nil
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
	return fmt.Sprintf("Admitted in the windows of %d s from before the hand-over to after the crash, of a limit of %s, by leases + by local shares: %s.",
		windowLength, count(int(l.limit)), strings.Join(parts, ", "))
}

func (l *load) stop() {
	l.cancel()
	l.running.Wait()
}
