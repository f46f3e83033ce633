package sidecar

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/check"
	"github.com/weir-dev/weir/pkg/policy"
)

// askCheck asks the check API for one unit of a tenant.
func askCheck(ctx context.Context, s *sandbox, tenant string) (status int, err error) {
	body := strings.NewReader(`{"policy": "checkout", "limit": "per-tenant", "key": "` + tenant + `"}`)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url(15010, check.Path), body)
	if err != nil {
		return 0, err
	}
	r.Close = true
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// TestHeadersWithUnderscoresAreTreatedAsAsked of the sidecar.
func TestHeadersWithUnderscoresAreTreatedAsAsked(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	c := serveController(t, s)
	c.config.Snapshot, c.config.Version, _ = snapshotOf(t, policy.Store{Type: policy.ControllerStore}, 2)
	s.args = append(s.args, "--underscores=refuse")
	s.start(t)
	if status, _, err := get(t, s.url(15006, "/"), "X_Tenant", "ann"); err != nil || status != http.StatusBadRequest {
		t.Errorf("a request that is to be refused got %d, %v", status, err)
	}
}

// TestTheAppIsAnsweredFromTheCountersOfRequests: what it asks and requests share one.
func TestTheAppIsAnsweredFromTheCountersOfRequests(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	c := serveController(t, s)
	c.config.Snapshot, c.config.Version, _ = snapshotOf(t, policy.Store{Type: policy.ControllerStore}, 2)
	s.start(t)
	c.awaitAcknowledgement(t)
	if status, err := askCheck(t.Context(), s, "ann"); err != nil || status != http.StatusOK {
		t.Fatalf("the first question got %d, %v", status, err)
	}
	if status, _, err := get(t, s.url(15006, "/"), "X-Tenant", "ann"); err != nil || status != http.StatusOK {
		t.Fatalf("the first request got %d, %v", status, err)
	}
	if status, err := askCheck(t.Context(), s, "ann"); err != nil || status != http.StatusTooManyRequests {
		t.Errorf("the second question got %d, %v", status, err)
	}
	if _, body, err := get(t, s.url(15020, "/metrics")); err != nil || !strings.Contains(body, "weir_decision_seconds_count 3") {
		t.Errorf("metrics: %v, %s", err, body)
	}
}
