//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-dev/weir/internal/testing/windows"
)

const (
	limit  = 200
	window = 5 * time.Second
	// overload is four times what the limit admits, over two clients.
	overload = 4 * limit / int(window/time.Second) / 2

	// spill is how many requests that were admitted at the very end of a window may reach
	// the application in the next one, and be counted there.
	spill = limit / 20

	// settle is how long after its end a window's counts are final: until the
	// requests admitted in it are answered.
	settle = time.Second
)

// ask asks a bystander about an interval.
func (s *shop) ask(ctx context.Context, pod, path string, from, to time.Time) map[string]int64 {
	GinkgoHelper()
	var counts map[string]int64
	Eventually(func(g Gomega) {
		body, err := s.clientset.CoreV1().Pods(s.namespace).ProxyGet("http", pod, "8080", path, map[string]string{
			"from": strconv.FormatInt(from.UnixMicro(), 10), "to": strconv.FormatInt(to.UnixMicro(), 10),
		}).DoRaw(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(json.Unmarshal(body, &counts)).To(Succeed())
	}, 10*time.Second, 200*time.Millisecond).Should(Succeed())
	return counts
}

// reached returns how many requests reached each pod of the application.
func (s *shop) reached(ctx context.Context, from, to time.Time) map[string]int64 {
	GinkgoHelper()
	return s.ask(ctx, "tally", "between", from, to)
}

// outcomes returns what became of the clients' requests.
func (s *shop) outcomes(ctx context.Context, from, to time.Time) map[string]int64 {
	GinkgoHelper()
	sum := map[string]int64{}
	for _, c := range s.clients {
		for kind, n := range s.ask(ctx, c, "outcomes", from, to) {
			sum[kind] += n
		}
	}
	return sum
}

// thisWindow returns the start of the present store window: all clocks are this
// machine's, and windows are aligned to multiples of their length.
func thisWindow() time.Time { return windows.At(time.Now(), window) }

// nextWindow returns the start of the window after it.
func nextWindow() time.Time { return thisWindow().Add(window) }

// admitted waits until a window is over and returns what reached the application in it.
func (s *shop) admitted(ctx context.Context, start time.Time) int {
	GinkgoHelper()
	end := start.Add(window)
	sleepUntil(ctx, end.Add(settle))
	var n int64
	for _, m := range s.reached(ctx, start, end) {
		n += m
	}
	fmt.Fprintf(GinkgoWriter, "window %s: admitted %d, clients %v\n", start.Format("15:04:05"), n, s.outcomes(ctx, start, end))
	if n > limit+spill {
		AbortSuite(fmt.Sprintf("window %s admitted %d, and its limit is %d: no second attempt makes that good", start.Format("15:04:05"), n, limit))
	}
	return int(n)
}

// windows returns what was admitted in each of n windows from start on.
func (s *shop) windows(ctx context.Context, start time.Time, n int) []int {
	GinkgoHelper()
	var counts []int
	for i := range n {
		counts = append(counts, s.admitted(ctx, start.Add(time.Duration(i)*window)))
	}
	return counts
}

// awaitFull returns when n windows in a row, from the first on or later, admitted the
// whole limit. None may admit more. On a machine that is short of processors a lease can
// come too late for its window, and the limit is not used up then.
func (s *shop) awaitFull(ctx context.Context, first time.Time, n int) {
	GinkgoHelper()
	inARow(n, BeNumerically(">=", limit), func(i int) int {
		GinkgoHelper()
		admitted := s.admitted(ctx, first.Add(time.Duration(i)*window))
		Expect(admitted).To(BeNumerically("<=", limit))
		return admitted
	})
}

// inARow looks at window after window until n in a row are as wanted, and returns all.
func inARow[T any](n int, wanted OmegaMatcher, look func(i int) T) []T {
	GinkgoHelper()
	seen, err := windows.InARow(n, wanted, look)
	Expect(err).NotTo(HaveOccurred())
	return seen
}

// nobodyMissed says how the clients fared since an instant: nothing but answers.
func (s *shop) nobodyMissed(ctx context.Context, since time.Time) {
	GinkgoHelper()
	o := s.outcomes(ctx, since, time.Now())
	fmt.Fprintf(GinkgoWriter, "since %s: %v\n", since.Format("15:04:05"), o)
	Expect(o["offered"]).To(BeNumerically(">", 0))
	Expect(o["failed"]).To(BeZero(), "the clients' logs say why: kubectl -n %s logs -l role=load", s.namespace)
}

func sleepUntil(ctx context.Context, t time.Time) {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		Fail("the time of the spec is up: " + ctx.Err().Error())
	}
}
