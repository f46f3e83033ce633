package sidecar

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/admin"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// TestCredentialsAreNeverShown hands a sidecar the password of its store, in every
// way that fails, and looks wherever it could turn up.
func TestCredentialsAreNeverShown(t *testing.T) {
	const password = "canary-password"
	data, version, err := policy.Encode(policy.Snapshot{Cluster: "test", Policies: []policy.Policy{{
		Namespace: "shop", Name: "checkout", Mode: policy.Enforce, OnStoreUnavailable: policy.Deny,
		Store:       policy.Store{Type: policy.PostgresStore, Address: "127.0.0.1:1", Database: "weir", TLS: true, Secret: "shop/db", SecretVersion: "1"},
		Consistency: policy.Consistency{Mode: policy.Strict},
		Limits:      []policy.Limit{{Name: "all", Rates: []limiter.Rate{{Limit: 1, Window: limiter.Second}}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		secrets []*fleetpb.Secret
		want    string // that the store is unavailable for
	}{
		"it has not arrived": {nil, "have not arrived"},
		"it is not a certificate": {[]*fleetpb.Secret{{Name: "shop/db", Version: "1", Data: map[string][]byte{
			"username": []byte("app"), "ca.crt": []byte(password),
		}}}, "ca.crt of secret shop/db"},
		"nobody listens": {[]*fleetpb.Secret{{Name: "shop/db", Version: "2", Data: map[string][]byte{
			"username": []byte("app"), "password": []byte(password),
		}}}, `"storeError": "postgres at 127.0.0.1:1`},
	} {
		t.Run(name, func(t *testing.T) {
			var log lockedBuffer
			p, err := newProcess(config{namespace: "shop", mode: enforce.Enforce}, slog.New(slog.NewJSONHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			defer p.enforcer.Close(t.Context())
			shown := func() string {
				var all strings.Builder
				for path, h := range map[string]http.Handler{
					admin.ConfigPath: &admin.Config{Mode: p.cfg.mode, Source: p}, "/metrics": admin.New(p.metrics.Registry),
				} {
					w := httptest.NewRecorder()
					h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
					all.WriteString(w.Body.String())
				}
				return all.String() + log.String()
			}
			if err := (handler{p}).Apply(version, data, tc.secrets); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the reason is not reported", func() bool {
				if _, err := p.enforcer.Decide(t.Context(), httptest.NewRequest(http.MethodGet, "/", nil)); err != nil {
					t.Fatal(err)
				}
				return strings.Contains(shown(), tc.want)
			})
			if strings.Contains(shown(), password) {
				t.Errorf("the password is shown:\n%s", shown())
			}
		})
	}
}
