package postgres

import (
	"testing"
	"time"
)

func TestConnectionsEndBeforeTheNetworkForgetsThem(t *testing.T) {
	config, err := Options{Address: "db", User: "weir"}.config()
	if err != nil {
		t.Fatal(err)
	}
	if kept := config.MaxConnIdleTime + config.HealthCheckPeriod; kept < time.Minute || kept > 3*time.Minute {
		t.Errorf("a connection that nobody uses is kept for up to %v, want 1 to 3 minutes", kept)
	}
}
