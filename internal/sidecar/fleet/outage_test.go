package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// story runs what happens to a stream, and returns what is logged about it.
func story(t *testing.T, play func(o *outage)) (lines []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		o := &outage{log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))}
		play(o)
		o.stop()
		synctest.Wait()
		lines = strings.Split(strings.TrimSpace(out.String()), "\n")
	})
	return lines
}

// refused fails attempts for the given time, each from another port.
func refused(o *outage, long time.Duration) {
	port := 40000
	for end := time.Now().Add(long); time.Now().Before(end); port++ {
		o.lost(fmt.Errorf("read 10.0.0.1:%d: refused", port))
		time.Sleep(time.Second)
	}
}

func TestAnOutageIsLoggedOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		happen func(o *outage)
		want   []string // a part of each line
	}{
		"a day": {func(o *outage) {
			o.began(1)
			refused(o, 24*time.Hour)
			o.began(2)
			time.Sleep(steady + 1)
		}, []string{"connected", "refused", "again\" term=2 after=24h0m1"}},
		"another cause": {func(o *outage) {
			for range 100 {
				refused(o, time.Minute)
				o.lost(errors.New("no such host"))
			}
		}, []string{"refused", "no such host"}},
		"many causes": {func(o *outage) {
			for n := range 1000 {
				o.lost(errors.New(strings.Repeat("x", n)))
			}
		}, []string{"", "x", "xx", "xxx", "xxxx", "xxxxx", "xxxxxx", "xxxxxxx"}},
		"streams that do not last": {func(o *outage) {
			for range 1000 {
				o.began(1)
				o.lost(errors.New("replaced"))
			}
			o.began(1)
			time.Sleep(steady + 1)
		}, []string{"connected", "replaced", "again"}},
		"two outages": {func(o *outage) {
			for range 2 {
				refused(o, time.Minute)
				o.began(1)
				time.Sleep(time.Hour)
			}
		}, []string{"refused", "again", "refused", "again"}},
	} {
		t.Run(name, func(t *testing.T) {
			lines := story(t, tc.happen)
			if len(lines) != len(tc.want) {
				t.Fatalf("%d lines, want %d: %.2000q", len(lines), len(tc.want), lines)
			}
			for i, want := range tc.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("line %d is %s, want %q in it", i+1, lines[i], want)
				}
			}
		})
	}
}
