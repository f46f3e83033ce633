package pools_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/policy"
)

// A moody coordinator answers as a test sets.
type moody struct{ err error }

func (m *moody) Coordinator(policy.Store) (concurrency.Coordinator, error) { return m, nil }
func (m *moody) Retain(map[policy.Store]bool)                              {}

func (m *moody) Apply(context.Context, pool.Key, pool.Params, pool.Command) (pool.Grant, error) {
	return pool.Grant{}, m.err
}

// TestAnOutageIsLoggedOnce writes what becomes of commands as letters: an answer, a
// failure, a failure that comes late, and one of a command that was given up.
func TestAnOutageIsLoggedOnce(t *testing.T) {
	const (
		began = "WARN the coordinator does not answer pool=test/shop/checkout error=\"test: away\"\n"
		ended = "INFO the coordinator answers again pool=test/shop/checkout\n"
	)
	for name, tc := range map[string]struct{ commands, want string }{
		"it always answers":             {"aaaa", ""},
		"beats are lost":                {"ffaffa", ""},
		"an outage from the start":      {"ffffffff", began},
		"an outage that ends":           {"affffaa", began + ended},
		"two outages":                   {"fffafffa", began + ended + began + ended},
		"a late failure does not count": {"afflaa", ""},
		"failures that come too late":   {"alllla", ""},
		"commands that were given up":   {"accccca", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			m := new(moody)
			c, err := pools.Logged(m, slog.New(slog.NewTextHandler(&out, nil))).Coordinator(policy.Store{})
			if err != nil {
				t.Fatal(err)
			}
			for i, letter := range tc.commands {
				say(t.Context(), c, m, int64(i+1), letter)
			}
			if got := untimed(out.String()); got != tc.want {
				t.Errorf("it logged\n%swant\n%s", got, tc.want)
			}
		})
	}
}

// say sends a command with the outcome that the letter says.
func say(ctx context.Context, c concurrency.Coordinator, m *moody, seq int64, letter rune) {
	m.err = errAway
	switch letter {
	case 'a':
		m.err = nil
	case 'l':
		seq = 0
	case 'c':
		given, cancel := context.WithCancel(ctx)
		cancel()
		ctx = given
	}
	_, _ = c.Apply(ctx, pool.Key{Cluster: "test", Namespace: "shop", Name: "checkout"}, pool.Params{}, pool.Command{Seq: seq})
}

// untimed returns the level and the message of each line.
func untimed(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		_, line, _ = strings.Cut(line, "level=")
		b.WriteString(strings.ReplaceAll(strings.Replace(line, `msg="`, "", 1), `" pool=`, " pool="))
	}
	return b.String()
}
