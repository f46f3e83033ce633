package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// checkPolicy is what the sidecar of TestCheckAPI enforces.
func checkPolicy(address string, born []limiter.MemoryID) policy.Snapshot {
	daily := func(name string, n int64, parts ...string) policy.Limit {
		l := policy.Limit{
			Name: name, Rates: []limiter.Rate{{Limit: n, Window: limiter.Day}}, Retention: limiter.Retention{Born: born},
		}
		for _, header := range parts {
			if l.Key == nil {
				l.Key = &policy.Key{OnMissing: policy.Shared, MaxKeys: 1000}
			}
			l.Key.Parts = append(l.Key.Parts, policy.KeyPart{Type: policy.HeaderKey, Header: header})
		}
		return l
	}
	trial, fair, queue := daily("trial", 1), daily("fair", 10), daily("queue", 2)
	trial.Mode = policy.Shadow
	fair.Fairness = &policy.Fairness{Tenant: policy.KeyPart{Type: policy.HeaderKey, Header: "x-tenant"}, DefaultWeight: 1}
	queue.Algorithm, queue.Rates[0].Window, queue.MaxDelay = policy.LeakyBucket, limiter.Second, limiter.Second
	return policy.Snapshot{Cluster: "conformance", Policies: []policy.Policy{{
		Namespace: "conformance", Name: "checkout", Generation: 1, Mode: policy.Enforce,
		Store:       policy.Store{Type: policy.RedisStore, Address: address},
		Consistency: policy.Consistency{Mode: policy.Strict}, OnStoreUnavailable: policy.Deny,
		Limits: []policy.Limit{daily("all", 3), daily("user", 3, "x-user"), daily("pair", 3, "x-user", "x-plan"), fair, queue, trial},
	}}}
}

// A checkCase is a request for the check API.
type checkCase struct {
	path, body string
	status     int
	invalid    bool // the document does not allow the request
}

// checkCases follow each other, over one store.
var checkCases = []checkCase{
	{"/v1/check", `{"policy":"checkout","limit":"all"}`, 200, false},
	{"/v1/check", `{"policy":"checkout","limit":"all","cost":2}`, 200, false},
	{"/v1/check", `{"policy":"checkout","limit":"all"}`, 429, false},
	{"/v1/check", `{"policy":"checkout","limit":"all","peek":true}`, 429, false},
	{"/v1/check", `{"policy":"checkout","limit":"user","key":"ann"}`, 200, false},
	{"/v1/check", `{"policy":"checkout","limit":"user","key":["ann"]}`, 200, false},
	{"/v1/check", `{"policy":"checkout","limit":"pair","key":["ann","gold"],"cost":3}`, 200, false},
	{"/v1/check", `{"policy":"checkout","limit":"fair","tenant":"blue"}`, 200, false},
	{"/v1/check", `{"policy":"checkout","limit":"queue"}`, 200, false},
	{"/v1/check", `{"policy":"checkout","limit":"queue"}`, 200, false}, // after a delay
	{"/v1/check", `{"policy":"checkout","limit":"trial"}`, 200, false},
	{"/v1/check", `{"policy":"checkout","limit":"trial"}`, 200, false},

	{"/v1/peek", `{"policy":"checkout","limit":"all"}`, 200, false},
	{"/v1/peek", `{"limits":[{"policy":"checkout","limit":"user","key":"bob"},{"policy":"checkout","limit":"trial"}]}`, 200, false},
	{"/v1/peek", `{"limits":[{"policy":"checkout","limit":"user","key":"bob","cost":4},{"policy":"checkout","limit":"queue"}]}`, 200, false},
	{"/v1/forecast", `{"policy":"checkout","limit":"all"}`, 200, false},
	{"/v1/forecast", `{"policy":"checkout","limit":"user","key":"bob"}`, 200, false},
	{"/v1/forecast", `{"limits":[{"policy":"checkout","limit":"user","key":"bob","cost":4},{"policy":"checkout","limit":"queue"}]}`, 200, false},

	// These are right by the document, and wrong for the policy.
	{"/v1/check", `{"policy":"nobody","limit":"all"}`, 404, false},
	{"/v1/peek", `{"policy":"checkout","limit":"none"}`, 404, false},
	{"/v1/forecast", `{"policy":"checkout","limit":"none"}`, 404, false},
	{"/v1/check", `{"policy":"checkout","limit":"all","key":"ann"}`, 400, false},
	{"/v1/check", `{"policy":"checkout","limit":"all","tenant":"blue"}`, 400, false},
	{"/v1/check", `{"policy":"checkout","limit":"all","cost":4}`, 400, false},
	{"/v1/peek", `{"policy":"checkout","limit":"pair","key":["ann"]}`, 400, false},
	{"/v1/forecast", `{"limits":[{"policy":"checkout","limit":"all"},{"policy":"checkout","limit":"all"}]}`, 400, false},

	{"/v1/check", `{"policy":"checkout"}`, 400, true},
	{"/v1/check", `{"policy":"checkout","limit":""}`, 400, true},
	{"/v1/check", `{"policy":"checkout","limit":"all","cost":0}`, 400, true},
	{"/v1/check", `{"policy":"checkout","limit":"all","cost":1.5}`, 400, true},
	{"/v1/check", `{"policy":"checkout","limit":"all","cost":"1"}`, 400, true},
	{"/v1/check", `{"policy":"checkout","limit":"all","costs":1}`, 400, true},
	{"/v1/check", `{"policy":"checkout","limit":"all","peek":"yes"}`, 400, true},
	{"/v1/check", `{"policy":"checkout","limit":"user","key":7}`, 400, true},
	{"/v1/check", `{"policy":"checkout","limit":"user","key":["a","b","c","d","e"]}`, 400, true},
	{"/v1/check", `{"policy":"checkout","limit":"fair","tenant":"` + strings.Repeat("t", 1025) + `"}`, 400, true},
	{"/v1/check", `{"policy":"` + strings.Repeat("p", 254) + `","limit":"all"}`, 400, true},
	{"/v1/check", `[]`, 400, true},
	{"/v1/peek", `{"policy":"checkout","limit":"all","peek":true}`, 400, true},
	{"/v1/peek", `{"policy":"checkout","limit":"all","limits":[]}`, 400, true},
	{"/v1/peek", `{"limits":[]}`, 400, true},
	{"/v1/forecast", `{"limits":[` + strings.TrimSuffix(strings.Repeat(`{"policy":"checkout","limit":"all"},`, 17), ",") + `]}`, 400, true},
	{"/v1/forecast", `{"limits":{"policy":"checkout","limit":"all"}}`, 400, true},
}

// TestCheckAPI sends a sidecar what docs/check.openapi.yaml allows and what it does not. The
// sidecar has to take the first, to refuse the second, and to answer as the document says. Each
// path, each field of an answer and each status but those of defects has to come up.
func TestCheckAPI(t *testing.T) {
	document, err := openapi3.NewLoader().LoadFromFile("../../docs/check.openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := document.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	openapi3filter.RegisterBodyDecoder("application/problem+json", openapi3filter.JSONBodyDecoder)
	store, born := startStore(t)
	address := freeAddress(t)
	runSidecar(t, checkPolicy(store.Address, born), "--check-address", address, "--rls-address", "")
	document.Servers = openapi3.Servers{{URL: "http://" + address}}
	paths, err := gorillamux.NewRouter(document)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the check API", func() error {
		_, err := askCheck(t.Context(), paths, address, checkCase{path: "/v1/peek", body: `{"policy":"checkout","limit":"all"}`})
		return err
	})
	seen := map[string]bool{}
	for _, c := range checkCases {
		answer, err := askCheck(t.Context(), paths, address, c)
		if err != nil {
			t.Errorf("%s %s: %v", c.path, c.body, err)
			continue
		}
		if answer.status != c.status || (answer.wrong != nil) != c.invalid {
			t.Errorf("%s %s: %d, want %d; by the document the request is wrong: %v, want %v", c.path, c.body, answer.status, c.status, answer.wrong, c.invalid)
		}
		seen[fmt.Sprint(c.path, " ", answer.status)] = true
	}
	store.Kill()
	away, err := askCheck(t.Context(), paths, address, checkCase{path: "/v1/check", body: `{"policy":"checkout","limit":"all","peek":true}`})
	if err != nil || away.status != http.StatusServiceUnavailable {
		t.Errorf("without its store it answers %d, %v; want 503", away.status, err)
	}
	unread, err := askCheck(t.Context(), paths, address, checkCase{path: "/v1/forecast", body: `{"policy":"checkout","limit":"fair"}`})
	if err != nil || unread.status != http.StatusOK || !bytes.Contains(unread.body, []byte(`"unread"`)) {
		t.Errorf("without its store it forecasts %s, %v", unread.body, err)
	}
	seen["/v1/check 503"] = true
	for _, path := range slices.Sorted(maps.Keys(document.Paths.Map())) {
		for status := range document.Paths.Value(path).Post.Responses.Map() {
			if status != "500" && !seen[path+" "+status] {
				t.Errorf("no case is answered with %s by %s", status, path)
			}
		}
	}
}

// A checkAnswer is that of a sidecar, which is as the document says.
type checkAnswer struct {
	status int
	body   []byte
	wrong  error // with the request
}

// askCheck sends a request. The error is that of an answer that is not as the document says.
func askCheck(ctx context.Context, paths routers.Router, address string, c checkCase) (checkAnswer, error) {
	request := func() *http.Request {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+c.path, strings.NewReader(c.body))
		if err != nil {
			panic(err) // paths are constants
		}
		r.Header.Set("Content-Type", "application/json")
		return r
	}
	route, parameters, err := paths.FindRoute(request())
	if err != nil {
		return checkAnswer{}, err
	}
	in := &openapi3filter.RequestValidationInput{Request: request(), PathParams: parameters, Route: route}
	wrong := openapi3filter.ValidateRequest(ctx, in)
	response, err := http.DefaultClient.Do(request())
	if err != nil {
		return checkAnswer{}, err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return checkAnswer{}, err
	}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: response.StatusCode, Header: response.Header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	out.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(ctx, out); err != nil {
		return checkAnswer{}, fmt.Errorf("the answer %d %s: %w", response.StatusCode, body, err)
	}
	return checkAnswer{response.StatusCode, body, wrong}, nil
}
