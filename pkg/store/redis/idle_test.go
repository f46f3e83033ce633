package redis

import (
	"testing"
	"time"
)

// TestConnectionsEndBeforeTheNetworkForgetsThem however the servers are reached.
func TestConnectionsEndBeforeTheNetworkForgetsThem(t *testing.T) {
	o := Options{Addresses: []string{"redis:6379"}}
	for name, kept := range map[string]time.Duration{
		"one server":       o.single().ConnMaxIdleTime,
		"behind Sentinels": o.failover().ConnMaxIdleTime,
		"a cluster":        o.cluster().ConnMaxIdleTime,
	} {
		if kept < time.Minute || kept > 3*time.Minute {
			t.Errorf("%s: a connection that nobody uses is kept for %v, want 1 to 3 minutes", name, kept)
		}
	}
}
