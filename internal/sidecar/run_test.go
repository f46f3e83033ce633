package sidecar

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/internal/version"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

const patience = 10 * time.Second

// A sandbox is a sidecar in this process, on an address of its own.
type sandbox struct {
	ip   string
	env  map[string]string
	args []string
	log  lockedBuffer
	stop context.CancelFunc
	done chan error
}

// newSandbox prepares a sidecar that proxies port 15006 to app.
func newSandbox(t *testing.T, app http.Handler) *sandbox {
	t.Helper()
	ip := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 2+rand.IntN(250))
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(app)
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(defaultToken)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, defaultToken), []byte("canary-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return &sandbox{
		ip:   ip,
		env:  pod("WEIR_SANDBOX_DIR", dir, "WEIR_SANDBOX_IP", ip, "WEIR_CA_BUNDLE", ""),
		args: []string{"--inbound=15006:" + port},
	}
}

func (s *sandbox) url(port int, path string) string {
	return fmt.Sprintf("http://%s:%d%s", s.ip, port, path)
}

// start runs the sidecar until the test ends, and returns when it is ready.
func (s *sandbox) start(t *testing.T) {
	t.Helper()
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	done := make(chan error, 1)
	s.done = done
	go func() { done <- Run(ctx, s.args, environment(s.env), io.Discard, &s.log) }()
	t.Cleanup(func() {
		s.stop()
		if s.done != nil {
			s.wait(t)
		}
	})
	eventually(t, "the sidecar is not ready", func() bool {
		status, _, err := get(t, s.url(15020, "/readyz"))
		return err == nil && status == http.StatusOK
	})
}

// wait returns how Run ended.
func (s *sandbox) wait(t *testing.T) {
	t.Helper()
	done := s.done
	s.done = nil
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("the sidecar ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("the sidecar does not end")
	}
}

func eventually(t *testing.T, complaint string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal(complaint)
		}
	}
}

// get asks on a connection of its own.
func get(t *testing.T, url string, headers ...string) (status int, body string, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Close = true
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// A lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

// snapshotOf encodes one policy: n an hour for each tenant.
func snapshotOf(t *testing.T, s policy.Store, n int64) (data []byte, version, packed string) {
	t.Helper()
	data, version, err := policy.Encode(policy.Snapshot{Cluster: "test", Policies: []policy.Policy{{
		Namespace: "shop", Name: "checkout", Generation: 1, Mode: policy.Enforce, Store: s,
		Consistency:        policy.Consistency{Mode: policy.Leased, Size: policy.Fixed, Batch: 10, Expiry: policy.Coupled},
		OnStoreUnavailable: policy.Deny,
		Limits: []policy.Limit{{
			Name:  "per-tenant",
			Key:   &policy.Key{Parts: []policy.KeyPart{{Type: policy.HeaderKey, Header: "x-tenant"}}, OnMissing: policy.Shared, MaxKeys: 10},
			Rates: []limiter.Rate{{Limit: n, Window: 3600 * limiter.Second}},
		}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	packed, err = policy.Pack(data)
	if err != nil {
		t.Fatal(err)
	}
	return data, version, packed
}

// silence returns the address of a server that accepts and says nothing.
func silence(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

// readyTime is ten times what a sidecar needs to become ready on a machine of its own,
// and shorter than any of the time-outs it could wait for.
const readyTime = 3 * time.Second

// TestReadyWhileEverythingElseIsAway starts with a controller and a Redis that
// never answer: it is ready without waiting for them, and the snapshot holds from the
// first request.
func TestReadyWhileEverythingElseIsAway(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	_, _, s.env["WEIR_SNAPSHOT"] = snapshotOf(t, policy.Store{Type: policy.RedisStore, Address: silence(t)}, 5)
	_, _, ca := newController(t)
	s.env["WEIR_CA_BUNDLE"] = ca
	s.args = append(s.args, "--fleet-address="+silence(t))
	begun := time.Now()
	s.start(t)
	if took := time.Since(begun); took > readyTime {
		t.Errorf("ready after %s", took)
	}
	if status, body, err := get(t, s.url(15006, "/")); err != nil || status != http.StatusServiceUnavailable || !strings.Contains(body, "per-tenant") {
		t.Errorf("got %d, %q, %v", status, body, err)
	}
	if status, _, err := get(t, s.url(15020, "/livez")); err != nil || status != http.StatusOK {
		t.Errorf("livez: %d, %v", status, err)
	}
}

// TestARestartDoesNotAskTheStoreOfTheSnapshot starts a container again in a pod that
// was created before the counters moved to another store. The old one has just been
// started, so it refuses everything.
func TestARestartDoesNotAskTheStoreOfTheSnapshot(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	old := redistest.Start(t)
	_, _, s.env["WEIR_SNAPSHOT"] = snapshotOf(t, policy.Store{Type: policy.RedisStore, Address: old.Addr}, 5)
	c := serveController(t, s)
	c.config.Snapshot, c.config.Version, _ = snapshotOf(t, policy.Store{Type: policy.ControllerStore}, 5)
	c.slow = 30 * time.Millisecond
	s.start(t)
	if status, body, err := get(t, s.url(15006, "/")); err != nil || status != http.StatusOK {
		t.Fatalf("the first request got %d, %q, %v", status, body, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if version := c.hellos[0].GetConfigVersion(); version != "" {
		t.Errorf("the sidecar said that %s of its pod is in force, so nothing would show it whether it still is", version)
	}
}

// A controller plays the fleet service: it sends one snapshot, grants from one
// budget, and records what it hears.
type controller struct {
	fleetpb.UnimplementedFleetServer
	config *fleetpb.Config
	slow   time.Duration                           // it takes to say what to enforce
	divide func(*fleetpb.Heartbeat) *fleetpb.Share // nil: beats are not answered

	mu       sync.Mutex
	hellos   []*fleetpb.Hello
	asked    string // server name
	granted  int64
	returned int64
	acks     []*fleetpb.Acknowledge
	beats    []*fleetpb.Heartbeat
	pool     *fleetpb.PoolReport              // the newest
	last     map[string]*fleetpb.WindowReport // newest row by limit
	order    []string                         // kinds of messages
}

// newController serves over TLS and returns its address and the certificate that vouches
// for it.
func newController(t *testing.T) (c *controller, address, ca string) {
	t.Helper()
	c = &controller{config: new(fleetpb.Config), last: map[string]*fleetpb.WindowReport{}}
	server := grpc.NewServer()
	fleetpb.RegisterFleetServer(server, c)
	front := httptest.NewUnstartedServer(server)
	front.EnableHTTP2 = true
	front.StartTLS()
	t.Cleanup(func() {
		server.Stop()
		front.Close()
	})
	ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}))
	return c, front.Listener.Addr().String(), ca
}

// serveController returns a controller to which the sidecar will connect.
func serveController(t *testing.T, s *sandbox) *controller {
	t.Helper()
	c, address, ca := newController(t)
	s.env["WEIR_CA_BUNDLE"] = ca
	s.args = append(s.args, "--fleet-address="+address, "--fleet-server-name=example.com")
	return c
}

// awaitAcknowledgement returns when the sidecar has acknowledged what it was sent.
func (c *controller) awaitAcknowledgement(t *testing.T) {
	t.Helper()
	eventually(t, "nothing is acknowledged", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.acks) > 0
	})
}

// Connect implements fleetpb.FleetServer.
func (c *controller) Connect(stream fleetpb.Fleet_ConnectServer) error {
	if authority := metadata.ValueFromIncomingContext(stream.Context(), ":authority"); len(authority) == 1 {
		c.mu.Lock()
		c.asked = authority[0]
		c.mu.Unlock()
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if m.GetHello() != nil {
			<-time.After(c.slow)
		}
		for _, answer := range c.hear(m) {
			if err := stream.Send(answer); err != nil {
				return err
			}
		}
		if m.GetLeave() != nil {
			return nil
		}
	}
}

func (c *controller) hear(m *fleetpb.FromHolder) []*fleetpb.ToHolder {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order = append(c.order, fmt.Sprintf("%T", m.GetMessage()))
	switch {
	case m.GetHello() != nil:
		c.hellos = append(c.hellos, m.GetHello())
		return []*fleetpb.ToHolder{
			{Message: &fleetpb.ToHolder_Welcome{Welcome: &fleetpb.Welcome{Term: 1, ReportIntervalMillis: 50}}},
			{Message: &fleetpb.ToHolder_Config{Config: c.config}},
		}
	case m.GetAcknowledge() != nil:
		c.acks = append(c.acks, m.GetAcknowledge())
	case m.GetHeartbeat() != nil:
		c.beats = append(c.beats, m.GetHeartbeat())
		if c.divide != nil {
			return []*fleetpb.ToHolder{{Message: &fleetpb.ToHolder_Share{Share: c.divide(m.GetHeartbeat())}}}
		}
	case m.GetReport() != nil:
		for _, p := range m.GetReport().GetPools() {
			c.pool = p
		}
		for _, l := range m.GetReport().GetLimits() {
			for _, w := range l.GetWindows() {
				c.last[l.GetLimit()] = w
			}
		}
	case m.GetLease().GetOp() == int32(limiter.Return):
		c.returned += m.GetLease().GetWant()
	case m.GetLease() != nil:
		return []*fleetpb.ToHolder{{Message: &fleetpb.ToHolder_Lease{Lease: c.grant(m.GetLease())}}}
	}
	return nil
}

func (c *controller) grant(r *fleetpb.LeaseRequest) *fleetpb.LeaseReply {
	rate := r.GetRates()[0]
	now := time.Now().UnixMicro()
	index := now / rate.GetWindowMicros()
	reply := &fleetpb.LeaseReply{
		Id: r.GetId(), Term: 1, NowMicros: now,
		Granted: min(r.GetWant(), rate.GetLimit()-c.granted), ExpiresInMicros: (index+1)*rate.GetWindowMicros() - now,
	}
	if reply.GetGranted() < r.GetMin() {
		reply.Granted, reply.Reason, reply.RetryAfterMicros = 0, int32(limiter.Exhausted), reply.GetExpiresInMicros()
	}
	if r.GetOp() == int32(limiter.Take) {
		c.granted += reply.GetGranted()
	}
	reply.Limit, reply.Remaining = rate.GetLimit(), rate.GetLimit()-c.granted
	reply.Windows = []*fleetpb.Window{{Rate: rate, Index: index, Granted: c.granted}}
	return reply
}

// TestALife follows a sidecar from its first policy to its last report.
func TestALife(t *testing.T) {
	release := make(chan struct{})
	entered := make(chan struct{}, 1)
	s := newSandbox(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			entered <- struct{}{}
			<-release
		}
		hello(w, r)
	}))
	c := serveController(t, s)
	var version string
	c.config.Snapshot, version, _ = snapshotOf(t, policy.Store{Type: policy.ControllerStore}, 100)
	c.config.Version = version
	s.start(t)
	eventually(t, "the policy is not acknowledged", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.acks) == 1 && c.acks[0].GetVersion() == version && c.acks[0].GetError() == ""
	})

	statuses := map[int]int{}
	for range 10 {
		status, _, err := get(t, s.url(15006, "/"), "X-Tenant", "canary-key")
		if err != nil {
			t.Fatal(err)
		}
		statuses[status]++
	}
	if statuses[200] != 10 {
		t.Errorf("statuses are %v, want 10 of 200", statuses)
	}
	slow := make(chan string, 1)
	go func() {
		_, body, _ := get(t, s.url(15006, "/slow"), "X-Tenant", "canary-key")
		slow <- body
	}()
	<-entered // the 11th unit, of a second lease: 9 are left in hand

	_, metrics, _ := get(t, s.url(15020, "/metrics"))
	if want := `weir_requests_total{decision="admitted",limit="per-tenant",namespace="shop",policy="checkout"} 11`; !strings.Contains(metrics, want) {
		t.Errorf("metrics lack %s", want)
	}
	_, shown, _ := get(t, s.url(15010, "/debug/config"))
	for _, want := range []string{version, `"connected": true`, `"term": 1`} {
		if !strings.Contains(shown, want) {
			t.Errorf("/debug/config lacks %s", want)
		}
	}

	s.stop()
	eventually(t, "it accepts requests while it stops", func() bool {
		_, _, err := get(t, s.url(15006, "/"))
		return err != nil
	})
	if status, _, err := get(t, s.url(15020, "/readyz")); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("readyz while stopping: %d, %v", status, err)
	}
	close(release)
	if body := <-slow; body != "hello" {
		t.Errorf("the request in flight got %q", body)
	}
	s.wait(t)

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.granted != 20 || c.returned != 9 {
		t.Errorf("granted %d and returned %d, want 20 and 9", c.granted, c.returned)
	}
	if row := c.last["per-tenant"]; row.GetAdmitted() != 11 || !row.GetFinal() {
		t.Errorf("the last row is %v, want 11 admitted, final", row)
	}
	if n := len(c.order); n < 2 || c.order[n-1] != "*fleetpb.FromHolder_Leave" || c.order[n-2] != "*fleetpb.FromHolder_Report" {
		t.Errorf("the last messages are %v", c.order[max(0, n-3):])
	}
	for name, text := range map[string]string{"the log": s.log.String(), "metrics": metrics, "/debug/config": shown} {
		if strings.Contains(text, "canary") {
			t.Errorf("%s shows a key or the token:\n%s", name, text)
		}
	}
}

// TestTheGracePeriodEnds: what is in flight then is cut off, a tunnel too.
func TestTheGracePeriodEnds(t *testing.T) {
	entered := make(chan struct{}, 2)
	s := newSandbox(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			entered <- struct{}{}
			<-r.Context().Done()
			return
		}
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = rw.Flush()
		entered <- struct{}{}
		_, _ = io.Copy(conn, rw)
	}))
	_, _, s.env["WEIR_SNAPSHOT"] = snapshotOf(t, policy.Store{Type: policy.ControllerStore}, 15)
	s.env["WEIR_MODE"] = "bypass"
	s.args = append(s.args, "--shutdown-grace-period=50ms")
	s.start(t)
	ended := make(chan struct{}, 2)
	for _, upgrade := range []string{"", "Connection: Upgrade\r\nUpgrade: websocket\r\n"} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", net.JoinHostPort(s.ip, "15006"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", upgrade)
		go func() {
			_, _ = io.Copy(io.Discard, conn)
			ended <- struct{}{}
		}()
		<-entered
	}
	s.stop()
	<-ended
	<-ended
	s.wait(t)
}

func TestAPortInUseIsAnError(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	_, _, s.env["WEIR_SNAPSHOT"] = snapshotOf(t, policy.Store{Type: policy.ControllerStore}, 15)
	listener, err := net.Listen("tcp", net.JoinHostPort(s.ip, "15010"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	err = Run(t.Context(), s.args, environment(s.env), io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), ":15010") {
		t.Errorf("got error %v", err)
	}
}

func TestABypassedPodSaysThatItDoesNotEnforce(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	c := serveController(t, s)
	c.config.Snapshot, c.config.Version, _ = snapshotOf(t, policy.Store{Type: policy.ControllerStore}, 1)
	s.env["WEIR_MODE"], s.env["WEIR_CAPTURE"] = "bypass", "port"
	s.start(t)
	c.awaitAcknowledgement(t)
	for range 3 {
		if status, _, err := get(t, s.url(15006, "/")); err != nil || status != http.StatusOK {
			t.Errorf("got %d, %v", status, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !strings.Contains(c.acks[0].GetError(), "bypass") {
		t.Errorf("acknowledged %v, which reads as enforced", c.acks[0])
	}
	hello := c.hellos[0]
	if hello.GetMode() != fleetpb.Mode_MODE_BYPASS || hello.GetCapture() != fleetpb.Capture_CAPTURE_PORT {
		t.Errorf("it introduced itself by %v", hello)
	}
	if hello.GetNamespace() != "shop" || hello.GetPod() != "checkout-1" || hello.GetPodUid() != "uid" || hello.GetBootNonce() == "" || hello.GetVersion() != version.String() {
		t.Errorf("it introduced itself by %v, which is another pod", hello)
	}
	if c.asked != "example.com" {
		t.Errorf("it asked for %q, want the name of --fleet-server-name", c.asked)
	}
}

// TestTheStartGivesBackWhatItHasLeftBehind: garbage is looked for once the sidecar is ready, though no
// connection has ended.
func TestTheStartGivesBackWhatItHasLeftBehind(t *testing.T) {
	s := newSandbox(t, http.NotFoundHandler())
	cfg, err := loadConfig(s.args, environment(s.env))
	if err != nil {
		t.Fatal(err)
	}
	p, err := newProcess(cfg, slog.New(slog.NewJSONHandler(&s.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	freed := make(chan int64)
	p.freed = func(bytes int64) { freed <- bytes }
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.run(ctx) }()
	select {
	case n := <-freed:
		if n != 0 {
			t.Errorf("the start notes %d bytes, want none but garbage", n)
		}
	case <-time.After(patience):
		t.Error("the start notes nothing")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
