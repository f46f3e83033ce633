package sidecar

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// of returns a snapshot of policies that admit nothing at all while their store is away,
// each for the requests to the path of its name.
func of(t *testing.T, generation int64, names ...string) []byte {
	t.Helper()
	s := policy.Snapshot{Cluster: "test"}
	for _, name := range names {
		s.Policies = append(s.Policies, policy.Policy{
			Namespace: "shop", Name: name, Generation: generation, Mode: policy.Enforce, OnStoreUnavailable: policy.Deny,
			Store:       policy.Store{Type: policy.ControllerStore},
			Consistency: policy.Consistency{Mode: policy.Strict},
			Limits: []policy.Limit{{
				Name:  "all",
				Match: []policy.Match{{Paths: []policy.PathMatch{{Type: policy.Exact, Value: "/" + name}}}},
				Rates: []limiter.Rate{{Limit: 1, Window: limiter.Second}},
			}},
		})
	}
	data, _, err := policy.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// later returns the snapshot with a field in the policy of that name that only a later
// version knows.
func later(data []byte, name string) []byte {
	field := fmt.Sprintf("%q:%q,", "name", name)
	return []byte(strings.Replace(string(data), field, field+`"hours":[9,17],`, 1))
}

func packed(t *testing.T, data []byte) string {
	t.Helper()
	text, err := policy.Pack(data)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestStartsWithASnapshotItDoesNotUnderstand: the app waits for its sidecar. The
// controller does not answer.
func TestStartsWithASnapshotItDoesNotUnderstand(t *testing.T) {
	for name, tc := range map[string]struct {
		snapshot string
		log      string
		refused  []string // paths
		passing  []string
	}{
		"not packed":             {"x", "WEIR_SNAPSHOT is not understood", nil, []string{"/a", "/b"}},
		"no snapshot":            {packed(t, []byte("[]")), "WEIR_SNAPSHOT is not understood", nil, []string{"/a", "/b"}},
		"a policy too new":       {packed(t, later(of(t, 1, "a", "b"), "b")), "policy shop/b is not understood and not enforced", []string{"/a"}, []string{"/b"}},
		"understood as a whole":  {packed(t, of(t, 1, "a", "b")), "ready", []string{"/a", "/b"}, []string{"/"}},
		"none, as when too long": {"", "ready", nil, []string{"/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSandbox(t, http.HandlerFunc(hello))
			_, _, ca := newController(t)
			s.env["WEIR_CA_BUNDLE"], s.env["WEIR_SNAPSHOT"] = ca, tc.snapshot
			s.args = append(s.args, "--fleet-address="+silence(t))
			begun := time.Now()
			s.start(t)
			if took := time.Since(begun); took > readyTime {
				t.Errorf("ready after %s", took)
			}
			for _, path := range tc.refused {
				if status, body, err := get(t, s.url(15006, path)); err != nil || status != http.StatusServiceUnavailable {
					t.Errorf("%s got %d, %q, %v, want 503", path, status, body, err)
				}
			}
			for _, path := range tc.passing {
				if status, body, err := get(t, s.url(15006, path)); err != nil || status != http.StatusOK {
					t.Errorf("%s got %d, %q, %v, want 200", path, status, body, err)
				}
			}
			eventually(t, fmt.Sprintf("the log does not say %q", tc.log), func() bool { return strings.Contains(s.log.String(), tc.log) })
		})
	}
}

// TestUnknownPartsAreRequestedFromTheController starts with a snapshot that is too new,
// and is sent another one.
func TestUnknownPartsAreRequestedFromTheController(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	c := serveController(t, s)
	c.config.Snapshot = of(t, 2, "b")
	c.config.Version = policy.Version(c.config.GetSnapshot())
	s.env["WEIR_SNAPSHOT"] = packed(t, later(of(t, 1, "b"), "b"))
	s.start(t)
	eventually(t, "what the controller says is not in force", func() bool {
		_, shown, _ := get(t, s.url(15010, "/debug/config"))
		return strings.Contains(shown, c.config.GetVersion()) && !strings.Contains(shown, "refused")
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.acks) == 0 || c.acks[0].GetError() != "" {
		t.Errorf("acknowledged %v", c.acks)
	}
}

// TestWithoutAControllerASnapshotHasToBeUnderstood: there is no controller to ask for
// the rest.
func TestWithoutAControllerASnapshotHasToBeUnderstood(t *testing.T) {
	for name, tc := range map[string]struct{ snapshot, want string }{
		"not packed":       {"x", "same version"},
		"a policy too new": {packed(t, later(of(t, 1, "a", "b"), "b")), "policy shop/b"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSandbox(t, http.HandlerFunc(hello))
			s.env["WEIR_SNAPSHOT"] = tc.snapshot
			ctx, cancel := context.WithTimeout(t.Context(), readyTime)
			defer cancel()
			err := Run(ctx, s.args, environment(s.env), io.Discard, io.Discard)
			for _, want := range []string{"WEIR_SNAPSHOT", tc.want, "--fleet-address"} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got error %v, want one that says %q", err, want)
				}
			}
		})
	}
}

// TestAPolicyTooNewHoldsNothingElseUp sends a running sidecar a change to one policy
// that it does not understand, of another that it never knew, and of one that it
// understands.
func TestAPolicyTooNewHoldsNothingElseUp(t *testing.T) {
	var log lockedBuffer
	p, err := newProcess(config{namespace: "shop", mode: enforce.Enforce}, slog.New(slog.NewJSONHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer p.enforcer.Close(t.Context())
	h := handler{p}
	apply := func(data []byte) error { return h.Apply(policy.Version(data), data, nil) }
	if err := apply(of(t, 1, "changed", "gone", "understood")); err != nil {
		t.Fatal(err)
	}
	if h.version() == "" {
		t.Fatal("nothing is said to be in force")
	}

	data := later(later(of(t, 2, "changed", "new", "understood"), "changed"), "new")
	err = apply(data)
	for _, want := range []string{
		"policy shop/changed is not understood, its last good version stays", `"hours"`,
		"policy shop/new is not understood and not enforced", "upgrade the sidecar: restart the pod",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the controller hears %v, which does not say %q", err, want)
		}
		if !strings.Contains(log.String(), strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
	if h.version() != "" {
		t.Error("a new session would take all of it for enforced")
	}
	set, _ := p.Set()
	for name, generation := range map[string]int64{"changed": 1, "gone": 0, "understood": 2, "new": 0} {
		if l := set.Lookup("shop", name, "all"); l == nil && generation != 0 || l != nil && l.Policy.Generation != generation {
			t.Errorf("of %s %v is in force, want generation %d", name, l, generation)
		}
		verdict, err := p.enforcer.Decide(t.Context(), httptest.NewRequest(http.MethodGet, "/"+name, nil))
		if err != nil || verdict.Allowed != (generation == 0) {
			t.Errorf("a request that %s limits: %+v, %v", name, verdict, err)
		}
	}

	if err := apply(of(t, 3, "changed", "new", "understood")); err != nil || h.version() == "" || len(p.Refused()) != 0 {
		t.Errorf("once all is understood: error %v, version %q, refused %v", err, h.version(), p.Refused())
	}
}

// TestTheBrakesThatNeedNoRestart are spec.mode Shadow and the deletion, of a policy and
// of a pool, whose store and coordinator are away.
func TestTheBrakesThatNeedNoRestart(t *testing.T) {
	pool, _, _ := poolSnapshot(t, 1)
	shadow := func(data []byte) []byte { return []byte(strings.Replace(string(data), `"Enforce"`, `"Shadow"`, 1)) }
	deleted := func([]byte) []byte { return of(t, 0) }
	for name, tc := range map[string]struct {
		data  []byte
		brake func(data []byte) []byte
	}{
		"a policy in Shadow":       {of(t, 1, "a"), shadow},
		"a policy that is deleted": {of(t, 1, "a"), deleted},
		"a pool in Shadow":         {pool, shadow},
		"a pool that is deleted":   {pool, deleted},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := newProcess(config{namespace: "shop", mode: enforce.Enforce}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer p.release(t.Context())
			for i, data := range [][]byte{tc.data, tc.brake(tc.data)} {
				if err := (handler{p}).Apply(policy.Version(data), data, nil); err != nil {
					t.Fatal(err)
				}
				request := httptest.NewRequest(http.MethodGet, "/a", nil)
				slot, full := p.pools.Acquire(request)
				if full == nil {
					slot.Release(concurrency.Served)
				}
				verdict, err := p.enforcer.Decide(t.Context(), request)
				if passes := full == nil && verdict.Allowed; err != nil || passes != (i == 1) {
					t.Errorf("push %d: passes %t, %+v, %v, %v", i+1, passes, verdict, full, err)
				}
			}
		})
	}
}

// TestTheConfigurationIsShownToThePodAlone: every pod of the cluster reaches the admin
// port.
func TestTheConfigurationIsShownToThePodAlone(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	s.env["WEIR_SNAPSHOT"] = packed(t, of(t, 1, "canary-policy"))
	s.start(t)
	if status, _, err := get(t, s.url(15020, "/debug/config")); err != nil || status != http.StatusNotFound {
		t.Errorf("the admin port answers %d, %v", status, err)
	}
	status, shown, err := get(t, s.url(15010, "/debug/config"))
	if err != nil || status != http.StatusOK || !strings.Contains(shown, "canary-policy") || !strings.Contains(shown, `"mode": "enforce"`) {
		t.Errorf("the check port answers %d, %v:\n%s", status, err, shown)
	}
	_, metrics, _ := get(t, s.url(15020, "/metrics"))
	if strings.Contains(metrics, `"/canary-policy"`) {
		t.Error("the metrics show a rule")
	}
}

// TestKeysStayUntilTheControllerHasReadThem: a leader that has just begun knows none.
func TestKeysStayUntilTheControllerHasReadThem(t *testing.T) {
	const keys = `{"keys":[{"kty":"OKP","kid":"a","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`
	push := func(generation int64, keys string) []byte {
		s, err := policy.Decode(of(t, generation, "a"))
		if err != nil {
			t.Fatal(err)
		}
		s.Policies[0].JWTProviders = []policy.JWTProvider{{Name: "accounts", Issuer: "accounts", Algorithms: []string{"EdDSA"}, URL: "https://accounts.example.com", Keys: keys}}
		data, _, err := policy.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	p, err := newProcess(config{namespace: "shop", mode: enforce.Enforce}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.release(t.Context())
	for i, keys := range []string{keys, ""} {
		data := push(int64(i+1), keys)
		if err := (handler{p}).Apply(policy.Version(data), data, nil); err != nil {
			t.Fatal(err)
		}
	}
	set, _ := p.enforcer.Set()
	if got := set.Snapshot.Policies[0]; got.Generation != 2 || got.JWTProviders[0].Keys != keys {
		t.Errorf("generation %d verifies tokens by %q, want %q", got.Generation, got.JWTProviders[0].Keys, keys)
	}
}
