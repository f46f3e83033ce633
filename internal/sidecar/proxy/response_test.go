package proxy_test

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// refusing is a decider that refuses as a policy with this response does.
func refusing(response policy.Response) decider {
	why := refusal(enforce.QuotaExceeded, twotier.Decision{Limit: 5, RetryAfter: 20 * time.Second, ResetAfter: 20 * time.Second}, limiter.Rate{Limit: 5, Window: 60 * limiter.Second})
	return func(r *http.Request) (enforce.Verdict, error) {
		v, err := why(r)
		v.Refusal.Policy.Response, v.Refusal.Limit.Cost = response, nil
		return v, err
	}
}

func TestRefusalsAreAsThePolicySays(t *testing.T) {
	for name, tc := range map[string]struct {
		response    policy.Response
		status      int
		contentType string
		body        string
		header      map[string]string
	}{
		"by default": {
			unjittered(), 429, "application/problem+json", `"violated-policies":["per-tenant"]`,
			map[string]string{"RateLimit": `"per-tenant";r=0;t=20`, "RateLimit-Policy": `"per-tenant";q=5;w=60`, "Retry-After": "20", "X-RateLimit-Limit": ""},
		},
		"in text": {
			policy.Response{IETF: true, Quota: policy.OnRejection, StatusCode: 503, Body: policy.TextBody},
			503, "text/plain; charset=utf-8",
			"Request cannot be satisfied as assigned quota has been exceeded: limit \"per-tenant\" of policy \"checkout\" admits 5 per 1m0s\n",
			map[string]string{"RateLimit": `"per-tenant";r=0;t=20`, "Retry-After": "20"},
		},
		"without a body": {
			policy.Response{XRateLimit: true, Quota: policy.OnRejection, StatusCode: 429, Body: policy.NoBody},
			429, "", "",
			map[string]string{"RateLimit": "", "RateLimit-Policy": "", "X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "20", "Retry-After": "20", "Content-Length": "0"},
		},
		"without fields": {
			policy.Response{Quota: policy.OnRejection, StatusCode: 429, Body: policy.NoBody},
			429, "", "",
			map[string]string{"RateLimit": "", "X-RateLimit-Limit": "", "Retry-After": "20"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			address := inFront(t, "127.0.0.1:1", refusing(tc.response))
			for _, http2 := range []bool{false, true} {
				res, body := do(t, client(t, http2), newRequest(t, http.MethodGet, "http://"+address+"/", nil))
				if res.StatusCode != tc.status || res.Header.Get("Content-Type") != tc.contentType || !strings.Contains(body, tc.body) || tc.body == "" && body != "" {
					t.Errorf("got %s, %s: %q", res.Status, res.Header.Get("Content-Type"), body)
				}
				for name, want := range tc.header {
					if got := res.Header.Get(name); got != want {
						t.Errorf("%s is %q, want %q", name, got, want)
					}
				}
			}
		})
	}
}

// TestClientsComeBackApart: jitter adds to the wait, up to its share, and never takes
// from it.
func TestClientsComeBackApart(t *testing.T) {
	response := unjittered()
	response.Jitter = 50
	address := inFront(t, "127.0.0.1:1", refusing(response))
	c := client(t, false)
	seen := map[int]bool{}
	for range 100 {
		res, _ := do(t, c, newRequest(t, http.MethodGet, "http://"+address+"/", nil))
		after, err := strconv.Atoi(res.Header.Get("Retry-After"))
		if err != nil || after < 20 || after > 30 {
			t.Fatalf("Retry-After is %q, want 20 to 30", res.Header.Get("Retry-After"))
		}
		seen[after] = true
	}
	if len(seen) < 3 {
		t.Errorf("all come back after one of %v", seen)
	}
}

func TestGRPCClientsAreToldInDetail(t *testing.T) {
	for name, tc := range map[string]struct {
		unavailable bool
		want        codes.Code
	}{
		"as exhausted":   {false, codes.ResourceExhausted},
		"as unavailable": {true, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			response := unjittered()
			response.GRPCUnavailable = tc.unavailable
			response.StatusCode = http.StatusServiceUnavailable // which is for other clients
			c := healthClient(t, inFront(t, "127.0.0.1:1", refusing(response)))
			_, err := c.Check(t.Context(), new(healthpb.HealthCheckRequest))
			if status.Code(err) != tc.want {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			info := detail[*errdetails.ErrorInfo](err)
			want := map[string]string{"namespace": "shop", "policy": "checkout", "limit": "per-tenant"}
			if info.GetReason() != "QUOTA_EXCEEDED" || info.GetDomain() != "weir.dev" || !cmp.Equal(info.GetMetadata(), want) {
				t.Errorf("the reason is %v", info)
			}
			if d := detail[*errdetails.RetryInfo](err).GetRetryDelay().AsDuration(); d != 20*time.Second {
				t.Errorf("come back after %v", d)
			}
			if v := detail[*errdetails.QuotaFailure](err).GetViolations(); len(v) != 1 || v[0].GetSubject() != "per-tenant" || v[0].GetDescription() != status.Convert(err).Message() {
				t.Errorf("violated: %v", v)
			}
		})
	}
}

// answering enforces limits with a response in front of an app, and returns where.
func answering(t *testing.T, mode policy.Mode, app http.Handler, response policy.Response, limits ...policy.Limit) (string, *enforce.Enforcer) {
	t.Helper()
	return enforcingAll(t, serve(t, app), mode, response, limits...)
}

func perMinute(name string, limit int64) policy.Limit {
	return policy.Limit{Name: name, Rates: []limiter.Rate{{Limit: limit, Window: limiter.MaxWindow}}}
}

func TestAdmittedClientsAreToldWhatIsLeft(t *testing.T) {
	fields := func(q policy.QuotaFields) policy.Response {
		return policy.Response{IETF: true, XRateLimit: true, Quota: q, StatusCode: 429, Body: policy.ProblemJSON}
	}
	for name, tc := range map[string]struct {
		response policy.Response
		want     []string // what RateLimit says up to its time, by request
	}{
		"always":     {fields(policy.Always), []string{`"tight";r=4`, `"tight";r=3`, `"tight";r=2`, `"tight";r=1`, `"tight";r=0`, `"tight";r=0`}},
		"near":       {fields(policy.NearLimit), []string{"", "", "", `"tight";r=1`, `"tight";r=0`, `"tight";r=0`}},
		"on refusal": {fields(policy.OnRejection), []string{"", "", "", "", "", `"tight";r=0`}},
	} {
		t.Run(name, func(t *testing.T) {
			app := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusEarlyHints) // which has none of it
				_, _ = io.WriteString(w, "hello")
			})
			address, _ := answering(t, policy.Enforce, app, tc.response, perMinute("wide", 1000), perMinute("tight", 5))
			c := client(t, false)
			for i, want := range tc.want {
				res, _ := do(t, c, newRequest(t, http.MethodGet, "http://"+address+"/", nil))
				got, _, _ := strings.Cut(res.Header.Get("RateLimit"), ";t=")
				if got != want || (res.Header.Get("RateLimit-Policy") != "") != (want != "") {
					t.Errorf("request %d: RateLimit is %q, want %q", i, got, want)
				}
				left := ""
				if _, r, ok := strings.Cut(want, ";r="); ok {
					left = r
				}
				if got := res.Header.Get("X-RateLimit-Remaining"); got != left {
					t.Errorf("request %d: X-RateLimit-Remaining is %q, want %q", i, got, left)
				}
			}
		})
	}
}

// TestTheAppsOwnFieldsStay: ours join a list, and leave a field that is not a list.
func TestTheAppsOwnFieldsStay(t *testing.T) {
	app := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RateLimit", `"app";r=9`)
		w.Header().Set("X-RateLimit-Remaining", "9")
	})
	address, _ := answering(t, policy.Enforce, app, policy.Response{IETF: true, XRateLimit: true, Quota: policy.Always, StatusCode: 429, Body: policy.NoBody}, perMinute("ours", 5))
	res, _ := do(t, client(t, false), newRequest(t, http.MethodGet, "http://"+address+"/", nil))
	list := strings.Join(res.Header.Values("RateLimit"), ", ")
	if !strings.HasPrefix(list, `"app";r=9, "ours";r=4;t=`) || res.Header.Get("X-RateLimit-Remaining") != "9" || len(res.Header.Values("X-RateLimit-Remaining")) != 1 {
		t.Errorf("got %v", res.Header)
	}
}

// TestShadowChangesNoByte compares what a client reads, through limits in shadow that
// would have refused, with what it reads through a proxy without any limit, and counts.
func TestShadowChangesNoByte(t *testing.T) {
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header()["Date"] = []string{"Sun, 22 Nov 2026 10:00:00 GMT"}
		w.Header().Set("Etag", `"x"`)
		w.Header().Set("Trailer", "X-Sum")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, strings.Repeat("hello ", 10))
		w.Header().Set("X-Sum", "7")
	})
	const conversation = "POST /a?b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" + "GET / HTTP/1.1\r\nHost: a\r\n\r\n" + "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	everything := policy.Response{IETF: true, XRateLimit: true, Quota: policy.Always, StatusCode: 429, Body: policy.ProblemJSON}
	plain := inFront(t, serve(t, app), admit)
	shadowed, e := answering(t, policy.Shadow, app, everything, perMinute("one", 1), shaper(limiter.Second))
	want := exchange(t, plain, conversation)
	if got := exchange(t, shadowed, conversation); got != want || !strings.Contains(want, "202 Accepted") {
		t.Errorf("in shadow a client reads\n%s\nand without limits\n%s", got, want)
	}
	if n := e.Limits()[0].Counts.Requests(count.ShadowRefused); n != 2 {
		t.Errorf("counted %d that would have been refused, want 2", n)
	}
}

// exchange sends what a client says and returns all that it reads.
func exchange(t *testing.T, address, said string) string {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, said); err != nil {
		t.Fatal(err)
	}
	read, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(read)
}

// TestAnAnswerWithoutATypeStaysSo: net/http would guess one by what comes first.
func TestAnAnswerWithoutATypeStaysSo(t *testing.T) {
	app := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "<html>")
	})
	inPool, _ := pooled(t, serve(t, app), fixed(1), decider(admit), newDivider())
	for name, address := range map[string]string{"without a slot": inFront(t, serve(t, app), admit), "with one": inPool} {
		res, body := do(t, client(t, false), newRequest(t, http.MethodGet, "http://"+address+"/", nil))
		if got, named := res.Header["Content-Type"]; named || body != "<html>" {
			t.Errorf("%s: got the type %q and %q, want none and what the app sent", name, got, body)
		}
	}
}
