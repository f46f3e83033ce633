package check

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

type noLimits struct{}

func (noLimits) Limits() []enforce.LimitState { return nil }
func (noLimits) Pools() []pools.State         { return nil }
func (noLimits) Fleet() *fleet.State          { return nil }

// checker answers every request alike and remembers the last.
type checker struct {
	decision twotier.Decision
	outlooks []enforce.Outlook
	looked   []enforce.Query
	err      error
	panics   bool
	asked    *enforce.Query
}

func (c *checker) Check(_ context.Context, q enforce.Query) (twotier.Decision, error) {
	if c.panics {
		panic("defect")
	}
	c.asked = &q
	return c.decision, c.err
}

func (c *checker) Peek(_ context.Context, qs []enforce.Query) ([]enforce.Outlook, error) {
	if c.panics {
		panic("defect")
	}
	c.looked = qs
	return c.outlooks, c.err
}

func post(c *checker, body string, changes ...func(*http.Request)) *httptest.ResponseRecorder {
	h := &Handler{Checker: c, Metrics: metrics.New(noLimits{}), Log: slog.New(slog.DiscardHandler)}
	r := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, change := range changes {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestDecisions(t *testing.T) {
	allowed := twotier.Decision{Allowed: true, Limit: 10, Remaining: 4, ResetAfter: 1500*time.Millisecond + 1, RetryAfter: time.Second}
	delayed := twotier.Decision{Allowed: true, Limit: 3, Delay: 250*time.Millisecond + 1}
	refused := twotier.Decision{Limit: 10, ResetAfter: 2 * time.Second, RetryAfter: 2 * time.Second}
	for name, tc := range map[string]struct {
		decision twotier.Decision
		status   int
		want     string
		retry    string
		delay    string
	}{
		"allowed": {allowed, 200, `{"allowed":true,"limit":10,"remaining":4,"resetAfterMs":1501,"retryAfterMs":0,"delayMs":0}`, "", ""},
		"delayed": {delayed, 200, `{"allowed":true,"limit":3,"remaining":0,"resetAfterMs":0,"retryAfterMs":0,"delayMs":251}`, "", "251"},
		"refused": {refused, 429, `{"allowed":false,"limit":10,"remaining":0,"resetAfterMs":2000,"retryAfterMs":2000,"delayMs":0}`, "2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := post(&checker{decision: tc.decision}, `{"policy":"p","limit":"l"}`)
			if w.Code != tc.status || strings.TrimSpace(w.Body.String()) != tc.want {
				t.Errorf("got %d %s, want %d %s", w.Code, w.Body, tc.status, tc.want)
			}
			if got := w.Header().Get("Retry-After"); got != tc.retry {
				t.Errorf("Retry-After is %q, want %q", got, tc.retry)
			}
			if got := w.Header().Get(delayHeader); got != tc.delay {
				t.Errorf("%s is %q, want %q", delayHeader, got, tc.delay)
			}
			if got := w.Header().Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type is %q", got)
			}
		})
	}
}

func TestRequestsAreRead(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		want enforce.Query
	}{
		"every field": {
			`{"policy":"p","limit":"l","key":"k","tenant":"t","cost":7,"peek":true}`,
			enforce.Query{Policy: "p", Limit: "l", Key: "k", Tenant: "t", Cost: 7, Peek: true},
		},
		"a key of several parts": {`{"policy":"p","limit":"l","key":["gold","GET"]}`, enforce.Query{Policy: "p", Limit: "l", Parts: []string{"gold", "GET"}, Cost: 1}},
		"a key of one in a list": {`{"policy":"p","limit":"l","key":["gold"]}`, enforce.Query{Policy: "p", Limit: "l", Key: "gold", Cost: 1}},
		"an empty list as key":   {`{"policy":"p","limit":"l","key":[]}`, enforce.Query{Policy: "p", Limit: "l", Cost: 1}},
		"a cost of 1 unless":     {`{"policy":"p","limit":"l"}`, enforce.Query{Policy: "p", Limit: "l", Cost: 1}},
		"in any order":           {` { "cost" : 2 , "limit" : "l" , "policy" : "p" } `, enforce.Query{Policy: "p", Limit: "l", Cost: 2}},
		"a key of many letters":  {`{"policy":"p","limit":"l","key":"\u00e4\u0000"}`, enforce.Query{Policy: "p", Limit: "l", Key: "ä\x00", Cost: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c := new(checker)
			post(c, tc.body)
			if diff := cmp.Diff(&tc.want, c.asked); diff != "" {
				t.Errorf("asked differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusedRequestsNameTheFieldAndTheCure(t *testing.T) {
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	method := func(m string) func(*http.Request) { return func(r *http.Request) { r.Method = m } }
	good := `{"policy":"p","limit":"l"}`
	for name, tc := range map[string]struct {
		body   string
		change func(*http.Request)
		status int
		want   []string // in the detail
	}{
		"another path":         {good, func(r *http.Request) { r.URL.Path = "/v2" }, 404, []string{Path}},
		"another method":       {good, method("GET"), 405, []string{"GET", "POST"}},
		"no content type":      {good, header("Content-Type", ""), 400, []string{"Content-Type", "application/json"}},
		"a form":               {good, header("Content-Type", "application/x-www-form-urlencoded"), 400, []string{"Content-Type"}},
		"no body":              {"", nil, 400, []string{"JSON object"}},
		"no JSON":              {"policy=p", nil, 400, []string{"JSON object"}},
		"a list":               {"[]", nil, 400, []string{"JSON object"}},
		"half an object":       {`{"policy":"p"`, nil, 400, []string{"JSON"}},
		"no UTF-8":             {"{\"policy\":\"\xff\",\"limit\":\"l\"}", nil, 400, []string{"UTF-8"}},
		"trailing data":        {good + good, nil, 400, []string{"more data"}},
		"no policy":            {`{"limit":"l"}`, nil, 400, []string{`"policy"`, "missing"}},
		"no limit":             {`{"policy":"p"}`, nil, 400, []string{`"limit"`, "missing"}},
		"an unknown field":     {`{"policy":"p","limit":"l","hits":1}`, nil, 400, []string{`"hits"`, "cost"}},
		"a field in capitals":  {`{"Policy":"p","limit":"l"}`, nil, 400, []string{`"Policy"`}},
		"a field twice":        {`{"policy":"p","policy":"q","limit":"l"}`, nil, 400, []string{`"policy"`, "twice"}},
		"a number as policy":   {`{"policy":7,"limit":"l"}`, nil, 400, []string{`"policy"`, "quotes"}},
		"an object as key":     {`{"policy":"p","limit":"l","key":{"a":1}}`, nil, 400, []string{`"key"`}},
		"null as key":          {`{"policy":"p","limit":"l","key":null}`, nil, 400, []string{`"key"`}},
		"a number in the key":  {`{"policy":"p","limit":"l","key":["a",1]}`, nil, 400, []string{`"key"`, "quotes"}},
		"a list in the key":    {`{"policy":"p","limit":"l","key":[["a"]]}`, nil, 400, []string{`"key"`, "quotes"}},
		"a key without end":    {`{"policy":"p","limit":"l","key":["a"`, nil, 400, []string{"JSON"}},
		"too many parts":       {`{"policy":"p","limit":"l","key":["a","b","c","d","e"]}`, nil, 400, []string{`"key"`, "4 parts"}},
		"long parts":           {`{"policy":"p","limit":"l","key":["a","` + strings.Repeat("k", maxKey) + `"]}`, nil, 400, []string{`"key"`, "1024"}},
		"a string as cost":     {`{"policy":"p","limit":"l","cost":"1"}`, nil, 400, []string{`"cost"`, "whole number"}},
		"null as cost":         {`{"policy":"p","limit":"l","cost":null}`, nil, 400, []string{`"cost"`}},
		"a fraction as cost":   {`{"policy":"p","limit":"l","cost":1.5}`, nil, 400, []string{`"cost"`}},
		"no cost at all":       {`{"policy":"p","limit":"l","cost":0}`, nil, 400, []string{`"cost"`, "from 1"}},
		"a negative cost":      {`{"policy":"p","limit":"l","cost":-1}`, nil, 400, []string{`"cost"`}},
		"too large a cost":     {`{"policy":"p","limit":"l","cost":1000000000001}`, nil, 400, []string{`"cost"`}},
		"a cost that overruns": {`{"policy":"p","limit":"l","cost":99999999999999999999}`, nil, 400, []string{`"cost"`}},
		"a string as peek":     {`{"policy":"p","limit":"l","peek":"yes"}`, nil, 400, []string{`"peek"`, "true nor false"}},
		"a long tenant":        {`{"policy":"p","limit":"l","tenant":"` + strings.Repeat("t", maxKey+1) + `"}`, nil, 400, []string{`"tenant"`, "1024"}},
		"a long policy":        {`{"policy":"` + strings.Repeat("p", maxName+1) + `","limit":"l"}`, nil, 400, []string{`"policy"`, "253"}},
		"a long key":           {`{"policy":"p","limit":"l","key":"` + strings.Repeat("k", maxKey+1) + `"}`, nil, 400, []string{`"key"`, "1024"}},
		"a body without end":   {`{"policy":"p","limit":"l","key":"` + strings.Repeat("k", maxBody) + `"}`, nil, 400, []string{"16384"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := new(checker)
			var changes []func(*http.Request)
			if tc.change != nil {
				changes = append(changes, tc.change)
			}
			wantProblem(t, post(c, tc.body, changes...), tc.status, tc.want...)
			if c.asked != nil {
				t.Errorf("counted %+v nevertheless", *c.asked)
			}
		})
	}
}

func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int, details ...string) {
	t.Helper()
	if w.Code != status {
		t.Errorf("got %d, want %d", w.Code, status)
	}
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type is %q", got)
	}
	var p problem.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != status || p.Title == "" {
		t.Errorf("got %s, %v", w.Body, err)
	}
	for _, want := range details {
		if !strings.Contains(p.Detail, want) {
			t.Errorf("%q does not say %q", p.Detail, want)
		}
	}
}

func TestErrorsOfTheCheck(t *testing.T) {
	body := `{"policy":"p","limit":"l"}`
	for name, tc := range map[string]struct {
		err    error
		status int
		detail string
	}{
		"an unknown policy":    {&enforce.NotFoundError{Field: "policy", Name: "p"}, 404, `field "policy"`},
		"an unknown limit":     {&enforce.NotFoundError{Field: "limit", Name: "l"}, 404, `field "limit"`},
		"a key too many":       {&enforce.KeyError{Limit: "l"}, 400, `field "key"`},
		"a tenant too many":    {&enforce.TenantError{Limit: "l"}, 400, `field "tenant"`},
		"a store that is away": {&store.UnavailableError{Store: "redis at cache:6379", Cause: errors.New("gone")}, 503, "redis at cache:6379: gone"},
		"a cost too high":      {&enforce.CostError{Limit: "l", Cost: 51, Most: 50}, 400, `field "cost": 51 can never be admitted`},
		"no key":               {&enforce.KeyError{Limit: "l", Parts: 1}, 400, `field "key"`},
		"anything else fails":  {errors.New("defect"), 500, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			wantProblem(t, post(&checker{decision: twotier.Decision{Allowed: true}, err: tc.err}, body), tc.status, tc.detail)
		})
	}
	t.Run("a panic fails", func(t *testing.T) {
		wantProblem(t, post(&checker{panics: true}, body), 500, "failed")
	})
}

// A wire is a request as the standard library reads it.
type wire struct {
	Policy, Limit, Tenant string
	Key                   keyParts
	Cost                  int64
	Peek                  bool
}

type keyParts []string

func (k *keyParts) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		var parts []string
		err := json.Unmarshal(text, &parts)
		*k = parts
		return err
	}
	*k = make(keyParts, 1)
	return json.Unmarshal(text, &(*k)[0])
}

func (w *wire) query() enforce.Query {
	q := enforce.Query{Policy: w.Policy, Limit: w.Limit, Tenant: w.Tenant, Cost: w.Cost, Peek: w.Peek}
	if len(w.Key) > 1 {
		q.Parts = w.Key
	} else {
		q.Key = strings.Join(w.Key, "")
	}
	return q
}

// FuzzParse checks the parser against the standard library's: whatever it takes
// is an object that means the same there, and nothing panics.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"policy":"p","limit":"l","key":"k","tenant":"t","cost":7,"peek":true}`))
	f.Add([]byte(`{"policy":"p","limit":"l","key":["k","",""]}`))
	f.Add([]byte(`{"policy":"p","limit":"l","cost":1e2}`))
	f.Add([]byte(`{"policy":"p","limit":"l"} {}`))
	f.Add([]byte(`{"cost":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := parse(body)
		if err != nil {
			return
		}
		want := wire{Cost: 1}
		dec := json.NewDecoder(strings.NewReader(string(body)))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&want); err != nil {
			t.Fatalf("took %q, which is not a request: %v", body, err)
		}
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			t.Fatalf("took %q, which is more than a request", body)
		}
		if diff := cmp.Diff(want.query(), got); diff != "" {
			t.Errorf("%q reads differently (-want +got):\n%s", body, diff)
		}
		if got.Policy == "" || got.Limit == "" || got.Cost < 1 || len(got.Key) > maxKey {
			t.Errorf("took %+v", got)
		}
	})
}
