package postgres_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/limiter"
)

// shiftedClock builds what shifts the clock of a process by the seconds in SHIFT, and
// returns the setting that loads it.
func shiftedClock(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-clock-") //nolint:usetesting // the server may not look into t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(dir, "shiftclock.so")
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-O2", "-o", library, "testdata/shiftclock.c").CombinedOutput()
	if err != nil {
		t.Fatalf("build the shifted clock: %v: %s", err, out)
	}
	return "LD_PRELOAD=" + library
}

// TestNoWindowIsServedAgainByAClockThatIsSetBack takes all of each window of a server
// whose clock is ahead, lets it crash, and goes on by the true clock: by a holder that
// begins then, and knows nothing of before.
func TestNoWindowIsServedAgainByAClockThatIsSetBack(t *testing.T) {
	const limit, ahead = 10, "6"
	load := shiftedClock(t)
	for name, retention := range map[string]limiter.Retention{"volatile": {}, "durable": {Durable: true}} {
		for way, end := range map[string]func(*postgrestest.Server){
			"restart": (*postgrestest.Server).Restart, "immediate stop": (*postgrestest.Server).Abort, "kill": (*postgrestest.Server).Crash,
		} {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel() // it waits for windows
				server := postgrestest.Start(t)
				server.Set(nil, []string{load, "SHIFT=" + ahead})
				server.Restart()
				p := perWindow(limit, limiter.Second)
				p.Retention = retention
				granted := map[int64]int64{}
				late := 0
				for i, lasts := range []time.Duration{3 * time.Second, 10 * time.Second} {
					if i == 1 {
						server.Set(nil, nil)
						end(server)
					}
					s := dial(t, server)
					for began := time.Now(); time.Since(began) < lasts; <-time.After(50 * time.Millisecond) {
						res := apply(t, s, counterOf("a"), p, limiter.Command{Min: 1, Want: limit})
						if res.Granted > 0 {
							granted[res.Windows.Open[0].Index] += res.Granted
							late += i
						}
					}
				}
				most := int64(0)
				for _, n := range granted {
					most = max(most, n)
				}
				if most != limit {
					t.Errorf("a window of %d granted %d: %v", limit, most, granted)
				}
				if late == 0 {
					t.Errorf("nothing is granted when the clock has caught up: %v", granted)
				}
			})
		}
	}
}

// TestAHolderKnowsTheClockThatTheServerForgot lets a server whose clock was ahead lose
// everything, its lease too, and go on by the true clock.
func TestAHolderKnowsTheClockThatTheServerForgot(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	server.Set(nil, []string{shiftedClock(t), "SHIFT=3600"})
	server.Restart()
	s := dial(t, server)
	p := perWindow(10, limiter.MinWindow)
	untilGranted(t, s, counterOf("window"), p)
	server.Set(nil, nil)
	server.Do("DROP SCHEMA weir CASCADE")
	server.Restart()
	bucket := limiter.Params{Algorithm: limiter.TokenBucket, Generation: 1, Rates: []limiter.Rate{{Limit: 10, Window: limiter.MinWindow}}}
	durable := p
	durable.Retention.Durable = true
	for range 2 {
		for hash, p := range map[string]limiter.Params{"a": p, "bucket": bucket, "durable": durable} {
			if res := answeredOf(t, s, hash, p); res.Reason != limiter.ClockBehind || res.RetryAfter < 3500*limiter.Second {
				t.Errorf("%s: got %v, retry after %d", hash, res.Reason, res.RetryAfter)
			}
		}
		<-time.After(300 * time.Millisecond) // a window that the new memory covers
	}
	if res := untilGranted(t, dial(t, server), counterOf("a"), p); res.Granted != 5 {
		t.Errorf("a holder that knows nothing is granted %d, want 5", res.Granted)
	}
}
