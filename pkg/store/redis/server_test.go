package redis

import (
	"strings"
	"testing"
)

// TestReasonsRepeatNoServer has a server send text where a value of Redis should be.
func TestReasonsRepeatNoServer(t *testing.T) {
	const sent = "TOPSECRET"
	for _, s := range []server{
		{info: map[string]string{"maxmemory_policy": sent, "connected_slaves": "0"}},
		{info: map[string]string{"maxmemory_policy": "noeviction", "connected_slaves": sent}},
		{info: map[string]string{"maxmemory_policy": "noeviction", "connected_slaves": "0", "aof_enabled": sent}},
		{
			info:   map[string]string{"maxmemory_policy": "noeviction", "connected_slaves": "0", "aof_enabled": "1"},
			config: map[string]string{"appendfsync": sent},
		},
		{
			info:   map[string]string{"maxmemory_policy": "noeviction", "connected_slaves": "0", "aof_enabled": "1"},
			config: map[string]string{"appendfsync": "always", "no-appendfsync-on-rewrite": sent},
		},
	} {
		for _, g := range []string{s.guarantee().Reason, s.durable().Reason} {
			if strings.Contains(g, sent) {
				t.Errorf("%+v: %s", s, g)
			}
		}
		if s.durable().Reason == "" {
			t.Errorf("%+v is taken for a server that loses nothing", s)
		}
	}
	evicting := server{info: map[string]string{"maxmemory_policy": "allkeys-lru", "connected_slaves": "0"}}
	if got := evicting.guarantee().Reason; !strings.Contains(got, "allkeys-lru") {
		t.Errorf("a value of Redis is left out: %s", got)
	}
}
