package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-dev/weir/test/conformance/exchange"
)

const (
	firstSeed = 1   // unless the environment says otherwise
	always    = 150 // exchanges of every run, from the first seed on
	drawn     = 50  // others, unless the environment says how many
	players   = 16  // exchanges at a time
)

// TestExchanges plays exchanges that are drawn from seeds with the app directly and through
// each target, and compares what client and app saw. CONFORMANCE_EXCHANGES is how many, from
// the seed CONFORMANCE_SEED on.
func TestExchanges(t *testing.T) {
	seeds, what := series(number(t, "CONFORMANCE_SEED", firstSeed), number(t, "CONFORMANCE_EXCHANGES", always)), ""
	if os.Getenv("CONFORMANCE_EXCHANGES") == "" {
		more := 1 + rand.IntN(1_000_000_000)
		seeds, what = append(seeds, series(more, drawn)...), fmt.Sprintf(", and from %d", more)
	}
	what = fmt.Sprintf("exchanges drawn from seeds, from %d%s", seeds[0], what)
	var apps []*exchange.App
	listen := func() string {
		app, err := exchange.Listen()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(app.Close)
		apps = append(apps, app)
		return app.Address()
	}
	ready := exchange.Ready()
	all := inFrontOf(t, proxyHTTP1, listen, func(address string) error {
		var wrong []error
		for _, app := range apps {
			seen, err := app.Run(t.Context(), ready, address)
			if err == nil && ready.Answered(seen) {
				return nil
			}
			wrong = append(wrong, cmp.Or(err, errors.New("it does not answer as the app")))
		}
		return errors.Join(wrong...)
	})
	for i, to := range all {
		t.Run(to.name, func(t *testing.T) {
			t.Parallel()
			note(what, to.name, play(t, apps[i], to, seeds), len(seeds))
		})
	}
}

// play plays exchanges through a target, and returns how many show no difference.
func play(t *testing.T, app *exchange.App, to target, seeds []int) int {
	t.Helper()
	var next, passed, reported atomic.Int64
	var all sync.WaitGroup
	for range players {
		all.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(seeds); n = int(next.Add(1)) - 1 {
				differences := compare(t, app, to, exchange.Draw(uint64(seeds[n])))
				switch {
				case len(differences) == 0:
					passed.Add(1)
				case !to.isOurs() && to.name != direct:
				case reported.Add(1) <= 20:
					t.Errorf("CONFORMANCE_SEED=%d CONFORMANCE_EXCHANGES=1: %s", seeds[n], strings.Join(differences, "\n  "))
				default:
					t.Fail()
				}
			}
		})
	}
	all.Wait()
	return int(passed.Load())
}

// outcomes is how often an exchange is played directly before what is seen through a target
// counts as a difference. Where one side ends a connection that the other still writes to, a
// reset may overtake what was sent before it, so one plan may have several outcomes.
const outcomes = 5

// compare plays one exchange through a target and directly.
func compare(t *testing.T, app *exchange.App, to target, p *exchange.Plan) (differences []string) {
	t.Helper()
	through, err := app.Run(t.Context(), p, to.address)
	if err != nil {
		return []string{err.Error()}
	}
	for range outcomes {
		directly, err := app.Run(t.Context(), p, app.Address())
		if err != nil {
			return []string{fmt.Sprintf("directly: %v", err)}
		}
		if differences = p.Compare(directly, through, app.Address(), to.name != direct); len(differences) == 0 {
			return nil
		}
		if os.Getenv("CONFORMANCE_SEED") != "" {
			t.Logf("%s\ndirectly %v\nthrough %s %v", p, directly, to.name, through)
		}
	}
	return differences
}

// series returns that many seeds.
func series(first, count int) []int {
	all := make([]int, count)
	for i := range all {
		all[i] = first + i
	}
	return all
}

// number is what a variable of the environment says.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: set it to a number from 1, or leave it empty", name, os.Getenv(name))
	}
	return n
}
