package redis

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/store"
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
		{overHTTP: true, info: map[string]string{"maxmemory_policy": "noeviction", "primary_member": sent}},
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

// TestGradesOfServices are by what INFO shows, and a service may leave out any of it.
func TestGradesOfServices(t *testing.T) {
	for name, tc := range map[string]struct {
		info map[string]string
		want store.Grade
		say  string
	}{
		"nothing":                     {map[string]string{}, store.BestEffort, "INFO does not show maxmemory_policy"},
		"that it evicts":              {map[string]string{"maxmemory_policy": "optimistic-volatile", "master_replid": "a"}, store.BestEffort, "optimistic-volatile"},
		"no instance":                 {map[string]string{"maxmemory_policy": "noeviction"}, store.BestEffort, "a failover is not noticed"},
		"a leader":                    {map[string]string{"maxmemory_policy": "noeviction", "primary_member": "10.0.0.1"}, store.BestEffort, "not one that has led before"},
		"an instance":                 {map[string]string{"maxmemory_policy": "noeviction", "master_replid": "a"}, store.HardExceptSplitBrain, "over HTTP"},
		"an instance without replica": {map[string]string{"maxmemory_policy": "noeviction", "master_replid": "a", "connected_slaves": "0", "aof_enabled": "1"}, store.HardExceptSplitBrain, "over HTTP"},
	} {
		s := server{overHTTP: true, info: tc.info, config: map[string]string{"appendfsync": "always", "no-appendfsync-on-rewrite": "no"}}
		if g := s.guarantee(); g.Grade != tc.want || !strings.Contains(g.Reason, tc.say) {
			t.Errorf("a service that shows %s: %+v, want %v, %q", name, g, tc.want, tc.say)
		}
		if s.forgetful() == "" {
			t.Errorf("a service that shows %s is believed to lose nothing", name)
		}
	}
}
