package postgres_test

import (
	"testing"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestAResetEndsWhatWasForgotten sets limits back that a loss of memory keeps from
// granting, by the counter and by the limit, and lets another loss follow.
func TestAResetEndsWhatWasForgotten(t *testing.T) {
	for name, retention := range map[string]limiter.Retention{"volatile": {}, "durable": {Durable: true}} {
		for which, hash := range map[string]*string{"a counter": new(string), "a limit": nil} {
			t.Run(name+" "+which, func(t *testing.T) {
				t.Parallel()
				server := postgrestest.Start(t)
				s := dial(t, server)
				p := daily(t, s, 10)
				p.Retention = retention
				key := counterOf("")
				loses := func() {
					t.Helper()
					server.Do("TRUNCATE weir.counters, weir.counters_durable")
					if res := apply(t, s, key, p, lease); res.Reason != limiter.Amnesia {
						t.Fatalf("after a loss: %v, want Amnesia", res.Reason)
					}
				}
				loses()
				if n, err := s.Reset(t.Context(), key.Scope, hash); n != 1 || err != nil {
					t.Fatalf("Reset: %d, %v", n, err)
				}
				for _, want := range []int64{5, 5, 0} {
					if res := apply(t, s, key, p, lease); res.Granted != want {
						t.Errorf("after the reset: %v of %d, want %d", res.Reason, res.Granted, want)
					}
				}
				loses()
			})
		}
	}
}

// TestAResetOfManyCountersGoesOn sets back more than one statement does.
func TestAResetOfManyCountersGoesOn(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s := dial(t, server)
	p := daily(t, s, 10)
	apply(t, s, counterOf("a"), p, lease)
	server.Do(`INSERT INTO weir.counters_durable (key, keep_until, generation, rates, index, used, entries)
		SELECT key || n, keep_until, generation, rates, index, used, entries FROM weir.counters_durable, generate_series(1, 1200) n`)
	if n, err := s.Reset(t.Context(), counterOf("").Scope, nil); n != 1201 || err != nil {
		t.Errorf("Reset: %d, %v, want 1201", n, err)
	}
	if used := server.Do("SELECT count(*) FROM weir.counters_durable WHERE used <> '{0}'")[0][0]; used != int64(0) {
		t.Errorf("%v counters are not set back", used)
	}
}
