package plugin

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/admin"
	"github.com/weir-dev/weir/internal/sidecar/recent"
	"github.com/weir-dev/weir/pkg/store"
)

// TestWhy asks a sidecar through a real API server, and compares the output with the page that
// documents it.
func TestWhy(t *testing.T) {
	noon := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	var ring recent.Ring
	for i, x := range []recent.Refusal{
		{Method: "GET", Path: "/\x1b[2J", Status: 429},
		{
			RequestID: "2f1c7a90", Method: "POST", Path: "/v1/orders", Status: 429, Reason: "QUOTA_EXCEEDED", Object: "ratelimitpolicy/checkout",
			Limit: "per-user", Hash: store.HashValue("ann"), RetryAfter: "42", Detail: `limit "per-user" of policy "checkout" admits 20 per 1m0s`,
		},
		{
			TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", Method: "GET", Path: "/v1/search", Status: 503, Reason: "NO_SLOT", Object: "concurrencypool/checkout",
			RetryAfter: "1", Detail: `pool "checkout" is full: its limit is 40, and all that this pod may have in flight, 20, is`,
		},
		{Method: "GET", Path: "/v1/cart", Status: 502, Detail: "the app behind the rate limiter did not answer"},
	} {
		x.Time = noon.Add(time.Duration(i) * time.Second)
		ring.Add(&x)
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+admin.RefusalsPath, admin.Refusals{Ring: &ring})
	node(t, mux)
	createNamespace(t)
	pod := sidecarIn(t, running("checkout-1"))
	pod.Spec.NodeName = "worker"
	createPod(t, pod)
	createPod(t, running("checkout-3"))

	args := []string{"why", "-n", "shop", "checkout-1", "--last", "3"}
	table, stderr := run(t, args...)
	if stderr != "" {
		t.Errorf("it warns of %q", stderr)
	}
	documented(t, "$ kubectl weir "+strings.Join(args, " "), table)
	if every, _ := run(t, "why", "-n", "shop", "--last", "0"); strings.Contains(every, "\x1b") || !strings.Contains(every, `/\x1b[2J`) {
		t.Errorf("it prints what a terminal obeys, or less than all:\n%q", every)
	}

	for id, path := range map[string]string{"2f1c7a90": "/v1/orders", "4bf92f3577b34da6a3ce929d0e0e4736": "/v1/search"} {
		text, _ := run(t, "why", "-n", "shop", "--request-id", id, "-o", "json") // of all pods with a sidecar
		var found whyList
		if err := json.Unmarshal([]byte(text), &found); err != nil || len(found.Items) != 1 || found.Total != 4 {
			t.Fatalf("JSON is %s (%v)", text, err)
		}
		if x := found.Items[0]; x.Pod != "checkout-1" || x.Path != path || x.RequestID+x.TraceID != id {
			t.Errorf("of %s it finds %+v", id, x)
		}
	}
	// Each field of a refusal is taken over.
	all, _ := run(t, append(args, "-o", "json")...)
	for _, x := range []string{
		`"time": "2026-11-01T12:00:01Z"`, `"requestId": "2f1c7a90"`, `"traceId": "4bf92`, `"method": "POST"`, `"path": "/v1/orders"`, `"status": 429`,
		`"reason": "QUOTA_EXCEEDED"`, `"object": "ratelimitpolicy/checkout"`, `"limit": "per-user"`, `"hash": "` + store.HashValue("ann"), `"retryAfter": "42"`, `"detail": "limit`,
	} {
		if !strings.Contains(all, x) {
			t.Errorf("JSON lacks %s", x)
		}
	}
	if _, stderr := run(t, "why", "-n", "shop", "--request-id", "none"); !strings.Contains(stderr, "None of the last refusals has that ID. The sidecars refused 4 requests") {
		t.Errorf("of an unknown ID it prints %q", stderr)
	}
	for want, wrong := range map[string][]string{
		"checkout-3 has no sidecar": {"checkout-3"},
		"use 0 or more":             {"--last", "-1"},
		"no pod of namespace":       {"-n", "default"},
	} {
		_, _, err := execute(t, append([]string{"why", "-n", "shop", "--kubeconfig", kubeconfig}, wrong...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", wrong, err, want)
		}
	}
	if keptRefusals != recent.Kept {
		t.Errorf("a sidecar keeps %d, and the command says %d", recent.Kept, keptRefusals)
	}
}

// TestNoRefusals: the command says so.
func TestNoRefusals(t *testing.T) {
	if got := (&whyList{answered: 1}).nothing(""); got != "The sidecar refused no request since it started." {
		t.Errorf("of one it says %q", got)
	}
	if got := (&whyList{answered: 3}).nothing(""); got != "No request was refused by 3 sidecars since they started." {
		t.Errorf("it says %q", got)
	}
}
