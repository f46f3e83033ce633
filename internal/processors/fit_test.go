package processors

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// A look is what was used since the one before, how often in a row, and how many processors
// there are then.
type look struct {
	used  float64
	times int
	want  int
}

func TestANeedFollowsWhatIsUsed(t *testing.T) {
	for name, looks := range map[string][]look{
		"a part of one":                {{0.5, 100, 1}},
		"more than half of one":        {{0.51, 1, 2}},
		"all there are":                {{1, 1, 2}, {2, 1, 4}, {4, 1, 6}, {6, 9, 6}},
		"a third of the others":        {{1, 1, 2}, {0.31, 100, 2}},
		"little for long":              {{1, 1, 2}, {0.3, calmLooks - 1, 2}, {0.3, 1, 1}, {0, 100, 1}},
		"little, with some in between": {{1, 1, 2}, {0.3, calmLooks - 1, 2}, {1, 1, 2}, {0.3, calmLooks - 1, 2}, {0.3, 1, 1}},
		"less by and by":               {{1, 1, 2}, {2, 1, 4}, {0, calmLooks, 3}, {0, calmLooks, 2}, {0, calmLooks, 1}},
	} {
		n := need{most: 6, now: 1}
		for i, l := range looks {
			for range l.times {
				n.next(l.used)
			}
			if n.now != l.want {
				t.Errorf("%s, after %d: %d processors, want %d", name, i, n.now, l.want)
			}
		}
	}
}

func TestAProgramThatUsesLittleIsSeldomLookedAt(t *testing.T) {
	for _, tc := range []struct {
		now  int
		used float64
		want time.Duration
	}{{1, 0, seldom}, {1, 0.25, seldom}, {1, 0.3, often}, {1, 1, often}, {2, 0, often}} {
		n := need{most: 4, now: tc.now}
		if got := n.next(tc.used); got != tc.want {
			t.Errorf("%v of %d: the next look comes after %v, want %v", tc.used, tc.now, got, tc.want)
		}
	}
}

// TestProcessorsAreSetWhenTheirNumberChanges: a program that uses all it has for a second, and
// then nothing.
func TestProcessorsAreSetWhenTheirNumberChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began, have := time.Now(), 1
		var spent, until time.Duration
		used := func() (time.Duration, bool) {
			if now := time.Since(began); now <= time.Second {
				spent += time.Duration(have) * (now - until)
				until = now
			}
			return spent, true
		}
		var set []int
		done := make(chan struct{})
		go func() {
			defer close(done)
			follow(ctx, need{most: 3, now: 1}, used, func(n int) {
				have = n
				set = append(set, n)
			})
		}()
		time.Sleep(time.Hour)
		cancel()
		<-done
		if want := []int{2, 3, 2, 1}; !slices.Equal(set, want) {
			t.Errorf("set to %v, want %v", set, want)
		}
	})
}

// TestTheEnvironmentTakesPrecedence has the test run as another process, whose threads it may
// bound.
func TestTheEnvironmentTakesPrecedence(t *testing.T) {
	if os.Getenv("FIT") != "" {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		Fit(ctx)
		if got := strconv.Itoa(runtime.GOMAXPROCS(0)); got != os.Getenv("FIT") {
			t.Errorf("%s processors, want %s", got, os.Getenv("FIT"))
		}
		return
	}
	for _, tc := range []struct{ variable, want string }{{"GOMAXPROCS=3", "3"}, {"GOMAXPROCS=", "1"}} {
		run := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheEnvironmentTakesPrecedence$")
		run.Env = append(os.Environ(), tc.variable, "FIT="+tc.want)
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", tc.variable, err, out)
		}
	}
}
