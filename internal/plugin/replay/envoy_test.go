package replay

import (
	"net/http"
	"testing"
	"time"
)

func TestEnvoyLines(t *testing.T) {
	at := time.Date(2026, 10, 10, 11, 55, 36, 123e6, time.UTC)
	for name, line := range map[string]string{
		"Envoy Gateway": `{"start_time":"2026-10-10T11:55:36.123Z","method":"GET","x-envoy-origin-path":"/a","path":"/rewritten",` +
			`":authority":"shop.example","downstream_remote_address":"203.0.113.7:41234","user-agent":"curl/8","x-tenant":"acme","response_code":200,"duration":3}`,
		"Istio": `{"start_time":"2026-10-10T11:55:36.123Z","method":"GET","path":"/a","authority":"shop.example",` +
			`"downstream_remote_address":"203.0.113.7:41234","user_agent":"curl/8","x_tenant":"acme","response_code":200,"upstream_host":"-"}`,
	} {
		t.Run(name, func(t *testing.T) {
			e, err := parseEnvoy(line)
			if err != nil {
				t.Fatal(err)
			}
			if !e.Time.Equal(at) || e.Method != http.MethodGet || e.Target != "/a" || e.Host != "shop.example" || e.Client != "203.0.113.7" ||
				e.Header.Get("User-Agent") != "curl/8" || e.Header.Get("X-Tenant") != "acme" || len(e.Header) != 2 {
				t.Errorf("it is %+v", e)
			}
		})
	}
	for _, line := range []string{
		"{", `{"method":"GET","path":"/"}`, `{"start_time":"now","method":"GET","path":"/"}`,
		`{"start_time":"2026-10-10T11:55:36Z","path":"/"}`, `{"start_time":"2026-10-10T11:55:36Z","method":"GET","path":"-"}`,
	} {
		if e, err := parseEnvoy(line); err == nil {
			t.Errorf("%s: it is %+v, want an error", line, e)
		}
	}
}
