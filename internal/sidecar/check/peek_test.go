package check

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

func postTo(path string, c *checker, body string) *httptest.ResponseRecorder {
	return post(c, body, func(r *http.Request) { r.URL.Path = path })
}

// gone is why a store was not read.
var gone = &store.UnavailableError{Store: "redis at cache:6379", Cause: errors.New("gone")}

// outlooks are one of each kind.
func outlooks() map[string]enforce.Outlook {
	of := func(d twotier.Decision, change func(*enforce.Outlook)) enforce.Outlook {
		o := enforce.Outlook{Forecast: twotier.Forecast{Decision: d}}
		change(&o)
		return o
	}
	none := func(*enforce.Outlook) {}
	refused := twotier.Decision{Source: twotier.FromStore, Reason: limiter.Exhausted, Limit: 10, Remaining: 3, ResetAfter: 2 * time.Second, RetryAfter: 1500 * time.Millisecond}
	return map[string]enforce.Outlook{
		"held": of(twotier.Decision{Allowed: true, Limit: 10, Remaining: 7, ResetAfter: 2 * time.Second}, func(o *enforce.Outlook) {
			o.Credits, o.Age = 4, 1200*time.Microsecond
		}),
		"delayed": of(twotier.Decision{Allowed: true, Source: twotier.FromStore, Limit: 3, Remaining: 2, Delay: 250 * time.Millisecond}, none),
		"refused": of(refused, none),
		"later":   of(refused, func(o *enforce.Outlook) { o.RetryAfter, o.Shared = 1800*time.Millisecond, true }),
		"never":   of(refused, func(o *enforce.Outlook) { o.Reason, o.Never = limiter.TooLarge, true }),
		"unread": of(twotier.Decision{Source: twotier.FromFailureAction, Reason: limiter.Exhausted, RetryAfter: time.Second}, func(o *enforce.Outlook) {
			o.Credits, o.Unread = 1, gone
		}),
		"shadow": of(refused, func(o *enforce.Outlook) { o.Shadow = true }),
		"bypass": of(twotier.Decision{Allowed: true, Limit: 10, Remaining: 10}, func(o *enforce.Outlook) { o.Bypass = true }),
	}
}

func TestPeeks(t *testing.T) {
	for names, want := range map[string]string{
		"held":         `{"allowed":true,"retryAfterMs":0,"limits":[{"allowed":true,"limit":10,"remaining":7,"resetAfterMs":2000,"retryAfterMs":0,"delayMs":0,"credits":4,"source":"Lease","storeAgeMs":2}]}`,
		"delayed":      `{"allowed":true,"retryAfterMs":0,"limits":[{"allowed":true,"limit":3,"remaining":2,"resetAfterMs":0,"retryAfterMs":0,"delayMs":250,"credits":0,"source":"Store","storeAgeMs":0}]}`,
		"never":        `{"allowed":false,"retryAfterMs":0,"limits":[{"allowed":false,"limit":10,"remaining":3,"resetAfterMs":2000,"retryAfterMs":0,"delayMs":0,"credits":0,"source":"Store","reason":"TooLarge","storeAgeMs":0}]}`,
		"unread":       `{"allowed":false,"retryAfterMs":1000,"limits":[{"allowed":false,"limit":0,"remaining":0,"resetAfterMs":0,"retryAfterMs":1000,"delayMs":0,"credits":1,"source":"FailureAction","reason":"Exhausted","unread":"redis at cache:6379: gone"}]}`,
		"shadow":       `{"allowed":true,"retryAfterMs":0,"limits":[{"allowed":true,"limit":10,"remaining":3,"resetAfterMs":2000,"retryAfterMs":0,"delayMs":0,"credits":0,"source":"Store","reason":"Exhausted","storeAgeMs":0,"shadow":true}]}`,
		"bypass":       `{"allowed":true,"retryAfterMs":0,"limits":[{"allowed":true,"limit":10,"remaining":10,"resetAfterMs":0,"retryAfterMs":0,"delayMs":0,"credits":0,"source":"Bypass"}]}`,
		"later":        `{"allowed":false,"retryAfterMs":1800,"limits":[{"allowed":false,"limit":10,"remaining":3,"resetAfterMs":2000,"retryAfterMs":1800,"delayMs":0,"credits":0,"source":"Store","reason":"Exhausted","storeAgeMs":0,"shared":true}]}`,
		"held refused": `{"allowed":false,"retryAfterMs":1500,`,
		// Of several, all have to admit.
		"refused held later":  `{"allowed":false,"retryAfterMs":1800,`,
		"later refused":       `{"allowed":false,"retryAfterMs":1800,`,
		"never later":         `{"allowed":false,"retryAfterMs":0,`,
		"later never refused": `{"allowed":false,"retryAfterMs":0,`,
		"held shadow bypass":  `{"allowed":true,"retryAfterMs":0,`,
	} {
		t.Run(names, func(t *testing.T) { wantLook(t, PeekPath, names, want) })
	}
}

func TestForecasts(t *testing.T) {
	for names, want := range map[string]string{
		"held":    `{"admitted":"Now","afterMs":0,"limits":[{"admitted":"Now","afterMs":0,"delayMs":0,"remaining":7,"fullAfterMs":2000,"credits":4,"source":"Lease","storeAgeMs":2}]}`,
		"delayed": `{"admitted":"Now","afterMs":0,"limits":[{"admitted":"Now","afterMs":0,"delayMs":250,"remaining":2,"fullAfterMs":0,"credits":0,"source":"Store","storeAgeMs":0}]}`,
		"refused": `{"admitted":"Later","afterMs":1500,"limits":[{"admitted":"Later","afterMs":1500,"delayMs":0,"remaining":3,"fullAfterMs":2000,"credits":0,"source":"Store","reason":"Exhausted","storeAgeMs":0}]}`,
		"never":   `{"admitted":"Never","limits":[{"admitted":"Never","delayMs":0,"remaining":3,"fullAfterMs":2000,"credits":0,"source":"Store","reason":"TooLarge","storeAgeMs":0}]}`,
		"unread":  `{"admitted":"Unknown","limits":[{"admitted":"Unknown","delayMs":0,"remaining":0,"fullAfterMs":0,"credits":1,"source":"FailureAction","reason":"Exhausted","unread":"redis at cache:6379: gone"}]}`,
		"shadow":  `{"admitted":"Now","afterMs":0,`,
		"bypass":  `{"admitted":"Now","afterMs":0,`,
		// Of several, all have to admit.
		"held refused later": `{"admitted":"Later","afterMs":1800,`,
		"later refused held": `{"admitted":"Later","afterMs":1800,`,
		"later unread":       `{"admitted":"Unknown","limits"`,
		"unread later":       `{"admitted":"Unknown","limits"`,
		"unread never":       `{"admitted":"Never","limits"`,
		"never unread held":  `{"admitted":"Never","limits"`,
	} {
		t.Run(names, func(t *testing.T) { wantLook(t, ForecastPath, names, want) })
	}
}

// wantLook looks at limits with the named outlooks. The answer begins with want.
func wantLook(t *testing.T, path, names, want string) {
	t.Helper()
	c := new(checker)
	for name := range strings.FieldsSeq(names) {
		c.outlooks = append(c.outlooks, outlooks()[name])
	}
	w := postTo(path, c, `{"policy":"p","limit":"l"}`)
	if w.Code != 200 || !strings.HasPrefix(w.Body.String(), want) {
		t.Errorf("got %d %s, want %s", w.Code, w.Body, want)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type is %q", got)
	}
	if c.asked != nil {
		t.Errorf("checked %+v", *c.asked)
	}
}

func TestLooksNameWhatIsWrong(t *testing.T) {
	several := `{"limits":[{"policy":"p","limit":"l"},{"policy":"p","limit":"m"}]}`
	for _, path := range []string{PeekPath, ForecastPath} {
		for name, tc := range map[string]struct {
			body   string
			err    error
			status int
			want   []string
		}{
			"no JSON":            {"policy=p", nil, 400, []string{"JSON object"}},
			"an unknown limit":   {`{"policy":"p","limit":"l"}`, &enforce.QueryError{Err: &enforce.NotFoundError{Field: "limit", Name: "l"}}, 404, []string{`field "limit"`}},
			"the second's key":   {several, &enforce.QueryError{At: 1, Err: &enforce.KeyError{Limit: "m", Parts: 1}}, 400, []string{"limits[1]", `field "key"`}},
			"anything else":      {several, errors.New("defect"), 500, []string{"failed"}},
			"a closed enforcer":  {several, &enforce.QueryError{At: 1, Err: errors.New("closed")}, 500, []string{"limits[1]", "failed"}},
			"a peek in the peek": {`{"policy":"p","limit":"l","peek":true}`, nil, 400, []string{`"peek"`, "limits"}},
		} {
			t.Run(path+" "+name, func(t *testing.T) {
				wantProblem(t, postTo(path, &checker{err: tc.err}, tc.body), tc.status, tc.want...)
			})
		}
		t.Run(path+" a panic fails", func(t *testing.T) {
			wantProblem(t, postTo(path, &checker{panics: true}, several), 500, "failed")
		})
	}
}

// TestNoCounterIsSetBack: whatever is sent, the answer names the cure.
func TestNoCounterIsSetBack(t *testing.T) {
	for _, body := range []string{"", "{}", `{"policy":"p","limit":"l","key":"k"}`} {
		c := new(checker)
		wantProblem(t, postTo(ResetPath, c, body), 403, "weir.dev/reset", "ratelimitpolicies")
		if c.asked != nil || c.looked != nil {
			t.Error("a limit was asked")
		}
	}
}

func TestLooksAreRead(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		want []enforce.Query
	}{
		"one": {`{"policy":"p","limit":"l","key":"k","tenant":"t","cost":7}`, []enforce.Query{{Policy: "p", Limit: "l", Key: "k", Tenant: "t", Cost: 7}}},
		"several, in their order": {
			`{"limits":[{"policy":"p","limit":"m","cost":2},{"policy":"p","limit":"l","key":"a"},{"policy":"p","limit":"l","key":"b"}]}`,
			[]enforce.Query{{Policy: "p", Limit: "m", Cost: 2}, {Policy: "p", Limit: "l", Key: "a", Cost: 1}, {Policy: "p", Limit: "l", Key: "b", Cost: 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := new(checker)
			postTo(PeekPath, c, tc.body)
			if diff := cmp.Diff(tc.want, c.looked); diff != "" {
				t.Errorf("looked at something else (-want +got):\n%s", diff)
			}
		})
	}
}
