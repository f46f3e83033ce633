package sidecar

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/check"
	"github.com/weir-dev/weir/pkg/policy"
)

// askCheck asks the check API for one unit of a tenant.
func askCheck(ctx context.Context, s *sandbox, tenant string) (status int, err error) {
	status, _, err = askAPI(ctx, s, check.Path, `{"policy": "checkout", "limit": "per-tenant", "key": "`+tenant+`"}`)
	return status, err
}

// askAPI posts to the check API.
func askAPI(ctx context.Context, s *sandbox, path, question string) (status int, answer string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url(15010, path), strings.NewReader(question))
	if err != nil {
		return 0, "", err
	}
	r.Close = true
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}

// TestTheAppLooksAtCounters: what it sees is what requests take, and it takes nothing itself.
func TestTheAppLooksAtCounters(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	c := serveController(t, s)
	c.config.Snapshot, c.config.Version, _ = snapshotOf(t, policy.Store{Type: policy.ControllerStore}, 200)
	s.start(t)
	c.awaitAcknowledgement(t)
	if status, err := askCheck(t.Context(), s, "ann"); err != nil || status != http.StatusOK {
		t.Fatalf("the first question got %d, %v", status, err)
	}
	const question = `{"limits": [{"policy": "checkout", "limit": "per-tenant", "key": "ann", "cost": 3}, {"policy": "checkout", "limit": "per-tenant", "key": "bob", "cost": 201}]}`
	for range 2 {
		for path, want := range map[string][]string{
			check.PeekPath: {
				`{"allowed":false,"retryAfterMs":0,"limits":[{"allowed":true,"limit":200,"remaining":199,`, `"credits":9,"source":"Lease","storeAgeMs":`,
				`"reason":"TooLarge"`,
			},
			check.ForecastPath: {`{"admitted":"Never","limits":[{"admitted":"Now","afterMs":0,"delayMs":0,"remaining":199,`, `{"admitted":"Never",`},
			check.ResetPath:    {"weir.dev/reset"},
		} {
			status, answer, err := askAPI(t.Context(), s, path, question)
			if wants := map[bool]int{true: http.StatusForbidden, false: http.StatusOK}; err != nil || status != wants[path == check.ResetPath] {
				t.Errorf("%s: got %d, %v", path, status, err)
			}
			for _, part := range want {
				if !strings.Contains(answer, part) {
					t.Errorf("%s: %s does not say %s", path, answer, part)
				}
			}
		}
	}
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
