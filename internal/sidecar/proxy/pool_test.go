package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/proxy"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/coordinator/memory"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A divider is the coordinator of every pool. It may go away.
type divider struct {
	memory *memory.Coordinator
	away   atomic.Bool
}

func newDivider() *divider {
	return &divider{memory: memory.New(memory.Options{Clock: now, Term: 1, First: true})}
}

func (d *divider) Coordinator(policy.Store) (concurrency.Coordinator, error) { return d, nil }
func (d *divider) Retain(map[policy.Store]bool)                              {}

func (d *divider) Apply(ctx context.Context, key pool.Key, p pool.Params, c pool.Command) (pool.Grant, error) {
	if d.away.Load() {
		return pool.Grant{}, &store.UnavailableError{Store: "test", Cause: errors.New("away")}
	}
	return d.memory.Apply(ctx, key, p, c)
}

// fixed is a pool of n slots whose share does not expire during a test.
func fixed(n int64) policy.Pool {
	return policy.Pool{
		Namespace: "shop", Name: "checkout", Mode: policy.Enforce,
		Coordinator: policy.Store{Type: policy.ControllerStore},
		Limit:       policy.LimitRange{Min: n, Initial: n, Max: n},
		Algorithm:   policy.LimitAlgorithm{Type: policy.FixedLimit},
		Aggregate:   policy.Median, Allocation: policy.EqualSplit, Handoff: policy.Acknowledged,
		Heartbeat:           policy.Heartbeat{Interval: 50 * limiter.Second, LeaseTTL: 60 * limiter.Second, MinInterval: limiter.Second},
		SelfFence:           policy.SelfFence{OnFenced: policy.Drain},
		OnCoordinatorOutage: policy.FailClosed,
		StatusCode:          http.StatusServiceUnavailable,
	}
}

// pooled serves a proxy in front of app whose requests need a slot, and returns its
// address and the enforcer once it has its share.
func pooled(t *testing.T, app string, p policy.Pool, judge proxy.Decider, d *divider) (string, *pools.Enforcer) {
	t.Helper()
	k := pools.New(pools.Config{Holder: "uid/nonce", Mode: enforce.Enforce, Coordinators: d})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // t.Context is done by then
		defer cancel()
		k.Close(ctx)
	})
	if err := adopt(k, &p); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is no share", func() bool { return k.States()[0].Stats.Share > 0 })
	return serve(t, newProxy(t, app, k, judge)), k
}

func adopt(k *pools.Enforcer, p *policy.Pool) error {
	set, err := policy.Compile(policy.Snapshot{Cluster: "test", Pool: p})
	if err != nil {
		return err
	}
	c, err := k.Prepare(set)
	if err == nil {
		c.Commit()
	}
	return err
}

func eventually(t *testing.T, complaint string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(10 * time.Second); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal(complaint)
		}
	}
}

// A gated app signals which requests came, and keeps them until it is signalled to go
// on.
type gated struct{ came, on chan struct{} }

func newGated() *gated { return &gated{came: make(chan struct{}, 16), on: make(chan struct{})} }

func (g *gated) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	g.came <- struct{}{}
	<-g.on
	_, _ = io.WriteString(w, "hello")
}

// start sends a request and returns where its status will be.
func start(t *testing.T, address, path string) <-chan int {
	t.Helper()
	status := make(chan int, 1)
	c, r := client(t, false), newRequest(t, http.MethodGet, "http://"+address+path, nil)
	go func() {
		defer close(status)
		res, err := c.Do(r)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		status <- res.StatusCode
	}()
	return status
}

func TestAFullPoolRefuses(t *testing.T) {
	app := newGated()
	p := fixed(1)
	p.Exempt = []policy.Match{{Paths: []policy.PathMatch{{Type: policy.Exact, Value: "/healthz"}}}}
	address, k := pooled(t, serve(t, app), p, decider(admit), newDivider())
	first := start(t, address, "/")
	<-app.came
	res, body := do(t, client(t, false), newRequest(t, http.MethodGet, "http://"+address+"/", nil))
	if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, `pool \"checkout\" is full`) {
		t.Errorf("got %s, %q", res.Status, body)
	}
	exempt := start(t, address, "/healthz")
	<-app.came
	if s := k.States()[0].Stats; s.InFlight != 1 || s.Refused != 1 {
		t.Errorf("%d are in flight and %d refused, want 1 and 1", s.InFlight, s.Refused)
	}
	close(app.on)
	if a, b := <-first, <-exempt; a != http.StatusOK || b != http.StatusOK {
		t.Errorf("got %d, and of an exempt request %d", a, b)
	}
	if res, _ := do(t, client(t, false), newRequest(t, http.MethodGet, "http://"+address+"/", nil)); res.StatusCode != http.StatusOK {
		t.Errorf("got %s when the slot was free again", res.Status)
	}
}

func TestRequestsWaitInTheQueue(t *testing.T) {
	app := newGated()
	p := fixed(1)
	p.Queue = &policy.Queue{MaxLength: 1, MaxWait: 10 * limiter.Second}
	address, k := pooled(t, serve(t, app), p, decider(admit), newDivider())
	first := start(t, address, "/")
	<-app.came

	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	r := newRequest(t, http.MethodGet, "http://"+address+"/", nil).WithContext(ctx)
	go func() {
		res, err := client(t, false).Do(r)
		if err == nil {
			res.Body.Close()
		}
		left <- err
	}()
	queued := func(n int64) func() bool { return func() bool { return k.States()[0].Stats.Queued == n } }
	eventually(t, "nobody waits", queued(1))
	leave()
	if err := <-left; err == nil {
		t.Error("a client that left was answered")
	}
	eventually(t, "a client that left still waits", queued(0))

	second := start(t, address, "/")
	eventually(t, "nobody waits", queued(1))
	if res, body := do(t, client(t, false), newRequest(t, http.MethodGet, "http://"+address+"/", nil)); res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "queue is full") {
		t.Errorf("got %s, %q", res.Status, body)
	}
	close(app.on)
	if a, b := <-first, <-second; a != http.StatusOK || b != http.StatusOK {
		t.Errorf("got %d and %d", a, b)
	}
}

func TestShadowAdmitsAndCounts(t *testing.T) {
	app := newGated()
	p := fixed(1)
	p.Mode, p.Queue = policy.Shadow, &policy.Queue{MaxLength: 9, MaxWait: limiter.Second}
	address, k := pooled(t, serve(t, app), p, decider(admit), newDivider())
	first, second := start(t, address, "/"), start(t, address, "/")
	<-app.came
	<-app.came
	close(app.on)
	if a, b := <-first, <-second; a != http.StatusOK || b != http.StatusOK {
		t.Errorf("got %d and %d", a, b)
	}
	if n := k.States()[0].Tallies[0].Spared(concurrency.Full); n != 1 {
		t.Errorf("%d are counted as spared, want 1", n)
	}
}

// TestALimitThatRefusesGivesTheSlotBack also sees that one that fails does.
func TestALimitThatRefusesGivesTheSlotBack(t *testing.T) {
	rate := limiter.Rate{Limit: 5, Window: limiter.Second}
	app := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, d := range map[string]decider{
		"refuses": refusal(enforce.QuotaExceeded, twotier.Decision{Limit: 5, RetryAfter: time.Second}, rate),
		"fails":   func(*http.Request) (enforce.Verdict, error) { return enforce.Verdict{}, errors.New("defect") },
		"panics":  func(*http.Request) (enforce.Verdict, error) { panic("defect") },
	} {
		t.Run(name, func(t *testing.T) {
			address, k := pooled(t, app, fixed(1), d, newDivider())
			for range 3 {
				if res, _ := do(t, client(t, false), newRequest(t, http.MethodGet, "http://"+address+"/", nil)); res.StatusCode == http.StatusOK || res.StatusCode == http.StatusServiceUnavailable {
					t.Errorf("got %s", res.Status)
				}
			}
			eventually(t, "a slot is held", func() bool { return k.States()[0].Stats.InFlight == 0 })
			if s := k.States()[0].Stats; s.Latency != 0 || s.Admitted != 3 {
				t.Errorf("%d had a slot and the latency is %v", s.Admitted, s.Latency)
			}
		})
	}
}

// defect is a pool that panics.
type defect struct{}

func (defect) Acquire(*http.Request) (pools.Slot, *pools.Refusal) { panic("defect") }

func TestAPoolThatPanicsAdmitsNothing(t *testing.T) {
	app := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request reached the app") }))
	address := serve(t, newProxy(t, app, defect{}, decider(admit)))
	if res, _ := do(t, client(t, false), newRequest(t, http.MethodGet, "http://"+address+"/", nil)); res.StatusCode != http.StatusInternalServerError {
		t.Errorf("got %s", res.Status)
	}
}

// fenced is a pool whose share expires soon, and then ends its requests.
func fenced() policy.Pool {
	p := fixed(5)
	p.Heartbeat = policy.Heartbeat{Interval: 50 * 1000, LeaseTTL: 300 * 1000, MinInterval: 50 * 1000}
	p.SelfFence.OnFenced = policy.Abort
	return p
}

// TestAFencedPodEndsItsRequests: what was not answered yet is a 503, and an answer
// under way breaks off.
func TestAFencedPodEndsItsRequests(t *testing.T) {
	came := make(chan struct{}, 2)
	app := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/begun" {
			_, _ = io.WriteString(w, "half of ")
			_ = http.NewResponseController(w).Flush()
		}
		came <- struct{}{}
		<-r.Context().Done()
	}))
	d := newDivider()
	address, k := pooled(t, app, fenced(), decider(admit), d)
	res, err := client(t, false).Do(newRequest(t, http.MethodGet, "http://"+address+"/begun", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	silent := start(t, address, "/")
	<-came
	<-came
	d.away.Store(true)
	if status := <-silent; status != http.StatusServiceUnavailable {
		t.Errorf("what was not answered got %d", status)
	}
	if body, err := io.ReadAll(res.Body); err == nil || string(body) != "half of " {
		t.Errorf("what was half answered got %q, %v", body, err)
	}
	if res, body := do(t, client(t, false), newRequest(t, http.MethodGet, "http://"+address+"/", nil)); res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "does not answer") {
		t.Errorf("a new request got %s, %q", res.Status, body)
	}
	eventually(t, "a slot is held", func() bool { return k.States()[0].Stats.InFlight == 0 })
	if s := k.States()[0].Stats; s.Aborted != 2 || s.Fences != 1 {
		t.Errorf("%d were ended in %d fences", s.Aborted, s.Fences)
	}
}

// TestAFencedPodForwardsNothing has the share expire while requests wait for their limits.
func TestAFencedPodForwardsNothing(t *testing.T) {
	app := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request reached the app") }))
	d, expired := newDivider(), make(chan struct{})
	late := decider(func(r *http.Request) (enforce.Verdict, error) {
		<-expired
		return admit(r)
	})
	address, k := pooled(t, app, fenced(), late, d)
	var answers []<-chan int
	for range 5 {
		answers = append(answers, start(t, address, "/"))
	}
	eventually(t, "requests have no slots", func() bool { return k.States()[0].Stats.InFlight == 5 })
	d.away.Store(true)
	eventually(t, "the pod is not fenced", func() bool { return k.States()[0].Stats.Fenced })
	close(expired)
	for _, status := range answers {
		if got := <-status; got != http.StatusServiceUnavailable {
			t.Errorf("got %d", got)
		}
	}
}

// TestARefusalThatAsksForNoBodyIsHeard: an app that answers a request with Expect before it
// has read the body is heard although the client waits to send that.
func TestARefusalThatAsksForNoBodyIsHeard(t *testing.T) {
	target := serve(t, answerUnread(http.StatusUnauthorized))
	address, _ := pooled(t, target, learning(), decider(admit), newDivider())
	c, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	got := make([]byte, 12)
	if _, err := io.ReadFull(c, got); string(got) != "HTTP/1.1 401" {
		t.Errorf("got %q, %v", got, err)
	}
}

// answerUnread answers without having read the request's body.
func answerUnread(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// TestAFullValueIsRefused, and others are not; a request without the key is malformed.
func TestAFullValueIsRefused(t *testing.T) {
	app := newGated()
	p := fixed(4)
	p.StatusCode = http.StatusTooManyRequests
	p.Key = &policy.PoolKey{Parts: []policy.KeyPart{{Type: policy.PathKey}, {Type: policy.QueryParamKey, Name: "model"}}, OnMissing: policy.Reject, Limit: 1}
	address, k := pooled(t, serve(t, app), p, decider(admit), newDivider())
	eventually(t, "there is no share", func() bool { return k.States()[1].Stats.Share > 0 })
	first := start(t, address, "/a?model=large")
	<-app.came
	get := func(path string, status int, says string) *http.Response {
		t.Helper()
		res, body := do(t, client(t, false), newRequest(t, http.MethodGet, "http://"+address+path, nil))
		if res.StatusCode != status || !strings.Contains(body, says) {
			t.Errorf("%s: got %s, %q", path, res.Status, body)
		}
		return res
	}
	res := get("/a?model=large", http.StatusTooManyRequests,
		`the limit per key of pool \"checkout\" is reached by the value that the request has: it is 1, and all that this pod may have in flight, 1, is`)
	if got := res.Header.Get("RateLimit-Policy"); got != `"checkout";q=1;qu="concurrent-requests"` {
		t.Errorf("RateLimit-Policy is %s", got)
	}
	get("/a", http.StatusBadRequest, `pool \"checkout\" counts by`)
	second := start(t, address, "/a?model=small")
	<-app.came
	close(app.on)
	if a, b := <-first, <-second; a != http.StatusOK || b != http.StatusOK {
		t.Errorf("got %d and %d", a, b)
	}
	eventually(t, "a slot is held", func() bool { return k.States()[0].Stats.InFlight+k.States()[1].Stats.InFlight == 0 })
}

// TestASecondPoolRefuses a request that has a slot of the first, which it gives back.
func TestASecondPoolRefuses(t *testing.T) {
	app := newGated()
	address, k := pooled(t, serve(t, app), fixed(2), decider(admit), newDivider())
	all, some := fixed(2), fixed(1)
	some.Name, some.Match = "search", []policy.Match{{Paths: []policy.PathMatch{{Type: policy.PathPrefix, Value: "/search"}}}}
	set, err := policy.Compile(policy.Snapshot{Cluster: "test", Pool: &all, Pools: []policy.Pool{some}})
	if err != nil {
		t.Fatal(err)
	}
	change, err := k.Prepare(set)
	if err != nil {
		t.Fatal(err)
	}
	change.Commit()
	eventually(t, "there is no share", func() bool { return k.States()[1].Stats.Share > 0 })
	get := func(path string) (*http.Response, string) {
		return do(t, client(t, false), newRequest(t, http.MethodGet, "http://"+address+path, nil))
	}
	first := start(t, address, "/search")
	<-app.came
	res, body := get("/search")
	if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, `pool \"search\" is full`) {
		t.Errorf("got %s, %q", res.Status, body)
	}
	second := start(t, address, "/")
	<-app.came
	if res, body := get("/"); res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, `pool \"checkout\" is full`) {
		t.Errorf("got %s, %q", res.Status, body)
	}
	if a, b := k.States()[0].Stats.InFlight, k.States()[1].Stats.InFlight; a != 2 || b != 1 {
		t.Errorf("%d and %d are in flight, want 2 and 1", a, b)
	}
	close(app.on)
	if a, b := <-first, <-second; a != http.StatusOK || b != http.StatusOK {
		t.Errorf("got %d and %d", a, b)
	}
	eventually(t, "a slot is held", func() bool { return k.States()[0].Stats.InFlight+k.States()[1].Stats.InFlight == 0 })
}
