package conformance

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
	"github.com/weir-dev/weir/internal/testing/freeport"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// Names of the programs that the suites ask.
const (
	direct  = "the app"
	limited = "sidecar"
	pooled  = "sidecar in a pool"
	other   = "haproxy"
)

// A target is what a suite asks: an app, or something in front of it.
type target struct{ name, address string }

// isOurs reports whether it is a sidecar.
func (t target) isOurs() bool { return t.name == limited || t.name == pooled }

// targets returns an app, and starts all that stands in front of it until the test ends. It
// waits until each passes what ready asks: a store that is new serves no window that began
// before it.
func targets(t *testing.T, app string, ready func(address string) error) []target {
	t.Helper()
	return inFrontOf(t, proxyHTTP2, func() string { return app }, ready)
}

// inFrontOf returns the same for an app of its own for each target. how configures haproxy.
func inFrontOf(t *testing.T, how haproxyConfig, app func() string, ready func(address string) error) []target {
	t.Helper()
	store, err := servers.Redis(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Kill)
	all := []target{
		{direct, app()},
		{limited, startSidecar(t, app(), snapshot(store.Address, false))},
		{pooled, startSidecar(t, app(), snapshot(store.Address, true))},
		{other, startHAProxy(t, app(), how)},
	}
	for _, at := range all {
		await(t, at.name, func() error { return ready(at.address) })
	}
	return all
}

// snapshot is a limit that no suite reaches, over a Redis, and a pool of as many slots.
func snapshot(address string, withPool bool) policy.Snapshot {
	const plenty = 1_000_000_000
	store := policy.Store{Type: policy.RedisStore, Address: address}
	s := policy.Snapshot{Cluster: "conformance", Policies: []policy.Policy{{
		Namespace: "conformance", Name: "wide", Generation: 1, Mode: policy.Enforce, Store: store,
		Consistency: policy.Consistency{
			Mode: policy.Leased, Size: policy.Adaptive, Batch: 1000, Min: 1, Max: 1_000_000, LowWater: 20, Expiry: policy.Coupled,
		},
		OnStoreUnavailable: policy.Allow, // suites ask for answers of an app, on a busy machine too
		Response:           policy.Response{Quota: policy.OnRejection, StatusCode: http.StatusTooManyRequests, Body: policy.ProblemJSON},
		Limits:             []policy.Limit{{Name: "all", Rates: []limiter.Rate{{Limit: plenty, Window: 5 * limiter.Second}}}},
	}}}
	if withPool {
		s.Pool = &policy.Pool{
			Namespace: "conformance", Name: "slots", Generation: 1, Mode: policy.Enforce, Coordinator: store,
			Limit: policy.LimitRange{Min: 20_000, Initial: 20_000, Max: 20_000}, Algorithm: policy.LimitAlgorithm{Type: policy.FixedLimit},
			Aggregate: policy.Median, Allocation: policy.EqualSplit, Handoff: policy.Acknowledged,
			Heartbeat:           policy.Heartbeat{Interval: limiter.Second, LeaseTTL: 10 * limiter.Second, Eager: true, MinInterval: limiter.Second / 50},
			SelfFence:           policy.SelfFence{Margin: limiter.Second / 2, OnFenced: policy.Drain},
			OnCoordinatorOutage: policy.LocalOnly, StatusCode: http.StatusServiceUnavailable,
		}
	}
	return s
}

// startSidecar runs a sidecar in front of an app as in a pod.
func startSidecar(t *testing.T, app string, s policy.Snapshot) string {
	t.Helper()
	listen := freeAddress(t)
	runSidecar(t, s, "--inbound", portOf(listen)+":"+portOf(app), "--rls-address", "")
	return listen
}

// runSidecar runs a sidecar with a snapshot and some flags, the last of which counts.
func runSidecar(t *testing.T, s policy.Snapshot, flags ...string) {
	t.Helper()
	data, _, err := policy.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := policy.Pack(data)
	if err != nil {
		t.Fatal(err)
	}
	run(t, program(t, "sidecar"), []string{"WEIR_POD_NAMESPACE=conformance", "WEIR_SNAPSHOT=" + packed, "WEIR_SANDBOX_IP=127.0.0.1"},
		append([]string{"--check-address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0"}, flags...)...)
}

// A haproxyConfig is what a plain reverse proxy needs. Two verbs stand for the address where
// it listens, and for the app's.
type haproxyConfig string

const haproxyDefaults = `
global
  maxconn 1000
defaults
  mode http
  timeout connect 5s
  timeout client 75s
  timeout server 75s
  timeout tunnel 75s
`

const (
	// proxyHTTP2 speaks HTTP/2 on both sides.
	proxyHTTP2 haproxyConfig = haproxyDefaults + `
frontend f
  bind %s proto h2
  default_backend b
backend b
  http-reuse always
  server app %s proto h2
`
	// proxyHTTP1 speaks HTTP/1 on both sides, and has a connection to the app for each of a client.
	proxyHTTP1 haproxyConfig = haproxyDefaults + `
frontend f
  bind %s
  default_backend b
backend b
  http-reuse never
  server app %s
`
)

func startHAProxy(t *testing.T, app string, how haproxyConfig) string {
	t.Helper()
	haproxy, err := exec.LookPath("haproxy")
	if err != nil {
		haproxy, err = exec.LookPath("/usr/sbin/haproxy")
	}
	if err != nil {
		t.Fatal("haproxy is not installed: install it with your system's package manager; make test-conformance does")
	}
	listen, file := freeAddress(t), filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, fmt.Appendf(nil, string(how), listen, app), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, haproxy, nil, "-q", "-db", "-f", file)
	return listen
}

// await waits until something is so.
func await(t *testing.T, what string, check func() error) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(time.Minute); ; {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s does not serve: %v", what, err)
		}
	}
}

// run runs a program until the test ends.
func run(t *testing.T, program string, env []string, args ...string) {
	t.Helper()
	c := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr = t.Output(), t.Output()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// packages are those of the suites' programs, each with the directory of the module that has
// its version.
var packages = map[string]struct{ module, path string }{
	"sidecar":          {"../..", "./cmd/sidecar"},
	"h2spec":           {".", "github.com/summerwind/h2spec/cmd/h2spec"},
	"client":           {".", "google.golang.org/grpc/interop/client"},
	"server":           {".", "google.golang.org/grpc/interop/server"},
	"ratelimit":        {"../bench/ratelimit", "github.com/envoyproxy/ratelimit/src/service_cmd"},
	"ratelimit-client": {"../bench/ratelimit", "github.com/envoyproxy/ratelimit/src/client_cmd"},
}

// programs are those that a suite asked for. TestMain removes their directory.
var programs struct {
	mu    sync.Mutex
	dir   string
	built map[string]bool
}

// program returns the path of a program, which is built the first time.
func program(t *testing.T, name string) string {
	t.Helper()
	programs.mu.Lock()
	defer programs.mu.Unlock()
	if programs.dir == "" {
		dir, err := os.MkdirTemp("", "weir-conformance-")
		if err != nil {
			t.Fatal(err)
		}
		programs.dir, programs.built = dir, map[string]bool{}
	}
	path := filepath.Join(programs.dir, name)
	if programs.built[name] {
		return path
	}
	of := packages[name]
	if out, err := exec.CommandContext(t.Context(), "go", "-C", of.module, "build", "-o", path, of.path).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	programs.built[name] = true
	return path
}
