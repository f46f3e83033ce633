package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-dev/weir/test/conformance/exchange"
)

const (
	firstSeed = 1  // unless the environment says otherwise
	players   = 16 // exchanges at a time
)

// TestExchanges plays exchanges that are drawn from seeds with the app directly and through
// each target, and compares what client and app saw. CONFORMANCE_EXCHANGES is how many.
func TestExchanges(t *testing.T) {
	if os.Getenv("CONFORMANCE_EXCHANGES") == "" {
		t.Skip("CONFORMANCE_EXCHANGES is not set; make conformance does")
	}
	seed := number(t, "CONFORMANCE_SEED", firstSeed)
	count := number(t, "CONFORMANCE_EXCHANGES", 1)
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
			passed := play(t, apps[i], to, seed, count)
			note("exchanges drawn from seeds", to.name, passed, count)
		})
	}
}

// play plays exchanges through a target, and returns how many show no difference.
func play(t *testing.T, app *exchange.App, to target, seed, count int) int {
	t.Helper()
	var next, passed, reported atomic.Int64
	var all sync.WaitGroup
	for range players {
		all.Go(func() {
			for n := int(next.Add(1)) - 1; n < count; n = int(next.Add(1)) - 1 {
				differences := compare(t, app, to, exchange.Draw(uint64(seed+n)))
				switch {
				case len(differences) == 0:
					passed.Add(1)
				case !to.isOurs() && to.name != direct:
				case reported.Add(1) <= 20:
					t.Errorf("CONFORMANCE_SEED=%d CONFORMANCE_EXCHANGES=1: %s", seed+n, strings.Join(differences, "\n  "))
				default:
					t.Fail()
				}
			}
		})
	}
	all.Wait()
	return int(passed.Load())
}

// compare plays one exchange directly and through a target.
func compare(t *testing.T, app *exchange.App, to target, p *exchange.Plan) []string {
	t.Helper()
	directly, err := app.Run(t.Context(), p, app.Address())
	if err != nil {
		return []string{fmt.Sprintf("directly: %v", err)}
	}
	through, err := app.Run(t.Context(), p, to.address)
	if err != nil {
		return []string{err.Error()}
	}
	differences := p.Compare(directly, through, app.Address(), to.name != direct)
	if len(differences) > 0 && os.Getenv("CONFORMANCE_SEED") != "" {
		t.Logf("%s\ndirectly %v\nthrough %s %v", p, directly, to.name, through)
	}
	return differences
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
