//go:build fleet

package fleet

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
	"github.com/weir-dev/weir/internal/testing/windows"
)

const (
	// longest is how long a spec waits at most for what is promised, but not by when: a machine that
	// is short of processors takes its time.
	longest = time.Minute

	// settle is how long after its end a window's counts are final: until the
	// requests that were sent in it are answered.
	settle = 700 * time.Millisecond
)

// windowAt returns the start of the store window of an instant: both stores keep
// this machine's time and align windows to multiples of their length.
func (s *shop) windowAt(t time.Time) time.Time { return windows.At(t, s.window) }

// nextWindow returns the start of the next window.
func (s *shop) nextWindow() time.Time { return s.windowAt(time.Now()).Add(s.window) }

// admitted waits until a window is over and returns what reached the
// application in it.
func (s *shop) admitted(ctx context.Context, start time.Time) int {
	sleepUntil(ctx, start.Add(s.window+settle))
	n := int(s.tally.Between(start, start.Add(s.window)))
	offered := s.load.Sum(start, start.Add(s.window), func(o *traffic.Outcomes) *traffic.Series { return &o.Offered })
	fmt.Fprintf(GinkgoWriter, "window %s: offered %d, admitted %d\n", start.Format("15:04:05"), offered, n)
	return n
}

// windows returns what was admitted in each of n windows from start on.
func (s *shop) windows(ctx context.Context, start time.Time, n int) []int {
	var counts []int
	for i := range n {
		counts = append(counts, s.admitted(ctx, start.Add(time.Duration(i)*s.window)))
	}
	return counts
}

// awaitUsed returns when n windows in a row, from the first on or later, admitted as much
// as is wanted. None may admit more than most. It returns what each window admitted.
func (s *shop) awaitUsed(ctx context.Context, first time.Time, n, wanted, most int) []int {
	GinkgoHelper()
	return inARow(n, BeNumerically(">=", wanted), func(i int) int {
		GinkgoHelper()
		admitted := s.admitted(ctx, first.Add(time.Duration(i)*s.window))
		Expect(admitted).To(BeNumerically("<=", most))
		return admitted
	})
}

// awaitFull returns when n windows in a row, from the first on or later, admitted the
// whole limit. None may admit more.
func (s *shop) awaitFull(ctx context.Context, first time.Time, n int) []int {
	GinkgoHelper()
	return s.awaitUsed(ctx, first, n, limit, limit)
}

// inARow looks at window after window until n in a row are as wanted, and returns all.
func inARow[T any](n int, wanted OmegaMatcher, look func(i int) T) []T {
	GinkgoHelper()
	seen, err := windows.InARow(n, wanted, look)
	Expect(err).NotTo(HaveOccurred())
	return seen
}

// warmUp returns the start of the first window in which the whole limit can be
// had. A store grants nothing in windows that began before its memory of them.
func (s *shop) warmUp(ctx context.Context) time.Time {
	first := s.nextWindow()
	sleepUntil(ctx, first.Add(100*time.Millisecond))
	return s.nextWindow()
}

// leaveCredits sends so little load for one window that every sidecar still
// holds credits at its end, and overload from then on. It returns the start of
// the next window, in which none of those may be spent.
func (s *shop) leaveCredits(ctx context.Context) time.Time {
	GinkgoHelper()
	const light = 20
	s.startLoad(light)
	window := s.warmUp(ctx)
	next := window.Add(s.window)
	sleepUntil(ctx, next)
	s.load.SetRate(overload)
	offered := light * int(s.window.Seconds())
	Expect(s.admitted(ctx, window)).To(And(BeNumerically(">", offered/2), BeNumerically("<=", offered+5)))
	return next
}

func sleepUntil(ctx context.Context, t time.Time) {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
