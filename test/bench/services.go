package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
	"github.com/weir-dev/weir/internal/testing/freeport"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/test/bench/traffic"
)

// fleet is how many processes decide over one store.
const fleet = 4

// A service is processes that answer Envoy's calls over one store.
type service struct {
	name   string
	pids   []int // of all that decides: the store, and the processes
	askers []*traffic.Asker
	redis  *goredis.Client
}

// services are all of them, and the processes behind them.
type services struct {
	processes

	all []*service
}

// The limits: a rate a second for each user, one a minute for each visitor, and one a
// second that is never used up.
const (
	userLimit                         = 100
	userKey, visitorKey, plentifulKey = "user", "visitor", "plentiful"
)

// openServices starts every service over a Redis of its own, or nothing.
func openServices() (s *services, err error) {
	s = &services{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := s.settle(); err != nil {
		return s, err
	}
	for _, program := range [][2]string{
		{filepath.Join("..", ".."), "./cmd/sidecar"},
		{"ratelimit", "github.com/envoyproxy/ratelimit/src/service_cmd"},
	} {
		if err := s.build(program[0], program[1]); err != nil {
			return s, err
		}
	}
	for _, start := range []struct {
		name    string
		process func(store, listen string, n int) (pid int, err error)
	}{
		{"envoyproxy/ratelimit", s.ratelimit},
		{"weir", s.sidecar(policy.Leased)},
		{"weir, strict", s.sidecar(policy.Strict)},
	} {
		if err := s.start(start.name, start.process); err != nil {
			return s, err
		}
	}
	return s, nil
}

// start starts a service and waits until each of its processes decides.
func (s *services) start(name string, process func(store, listen string, n int) (int, error)) error {
	store, err := servers.Redis(context.Background(), s.dir)
	if err != nil {
		return err
	}
	s.stopped = append(s.stopped, store.Kill)
	client := goredis.NewClient(&goredis.Options{Addr: store.Address, MaxRetries: -1})
	s.stopped = append(s.stopped, func() { _ = client.Close() })
	opened := &service{name: name, pids: []int{store.Process.PID()}, redis: client}
	for n := range fleet {
		listen, err := freeport.Address()
		if err != nil {
			return err
		}
		pid, err := process(store.Address, listen, n)
		if err != nil {
			return err
		}
		opened.pids = append(opened.pids, pid)
		a, err := connect(listen)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.stopped = append(s.stopped, func() { a.Close() })
		opened.askers = append(opened.askers, a)
	}
	s.all = append(s.all, opened)
	return nil
}

// connect waits until a service decides: a store that is new serves no window that began
// before it.
func connect(listen string) (a *traffic.Asker, err error) {
	ready := [][]byte{traffic.Message("keys", userKey, "ready")}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if a, err = traffic.NewAsker(listen); err != nil {
			continue
		}
		admitted := false
		err = a.Keep(1, time.Time{}, time.Now(), ready, func() int { return 0 }, func(r traffic.Answer) { admitted = r.Admitted })
		if err == nil && admitted {
			return a, nil
		}
		a.Close()
	}
	return nil, fmt.Errorf("it admits nothing: %w", err)
}

// sidecar starts one that leases as a policy without settings of its own does, or asks
// for each request.
func (s *services) sidecar(mode policy.ConsistencyMode) func(store, listen string, n int) (int, error) {
	return func(store, listen string, _ int) (int, error) {
		consistency := policy.Consistency{Mode: mode}
		if mode == policy.Leased {
			consistency = policy.Consistency{Mode: mode, Size: policy.Adaptive, Batch: 100, Min: 1, Max: 10_000, Expiry: policy.Coupled}
		}
		per := func(window limiter.Micros, key string, limit int64) policy.Limit {
			return policy.Limit{
				Name:  key,
				Match: []policy.Match{{Descriptors: []policy.DescriptorMatch{{Key: key}}}},
				Key: &policy.Key{
					Parts: []policy.KeyPart{{Type: policy.DescriptorKey, Name: key}}, OnMissing: policy.Skip, MaxKeys: visitors,
				},
				Rates: []limiter.Rate{{Limit: limit, Window: window}},
			}
		}
		data, _, err := policy.Encode(policy.Snapshot{Cluster: "bench", Policies: []policy.Policy{{
			Namespace: "bench", Name: "keys", Generation: 1, Mode: policy.Enforce,
			Store:              policy.Store{Type: policy.RedisStore, Address: store},
			Consistency:        consistency,
			OnStoreUnavailable: policy.Deny,
			Limits: []policy.Limit{
				per(limiter.Second, userKey, userLimit), per(60*limiter.Second, visitorKey, userLimit), per(limiter.Second, plentifulKey, plenty),
			},
		}}})
		if err != nil {
			return 0, err
		}
		packed, err := policy.Pack(data)
		if err != nil {
			return 0, err
		}
		return s.run("sidecar", []string{"WEIR_POD_NAMESPACE=bench", "WEIR_SNAPSHOT=" + packed, "WEIR_SANDBOX_IP=127.0.0.1"},
			"--check-address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0", "--rls-address", listen)
	}
}

// ratelimitConfig says the same as the sidecars' policy.
const ratelimitConfig = `domain: keys
descriptors:
- key: %s
  rate_limit: {unit: second, requests_per_unit: %d}
- key: %s
  rate_limit: {unit: minute, requests_per_unit: %d}
- key: %s
  rate_limit: {unit: second, requests_per_unit: %d}
`

// ratelimit starts Envoy's service as it comes, with its cache of counters that are used up.
func (s *services) ratelimit(store, listen string, n int) (int, error) {
	dir := filepath.Join(s.dir, "ratelimit", "keys", "config")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	file := filepath.Join(dir, "keys.yaml")
	text := fmt.Appendf(nil, ratelimitConfig, userKey, userLimit, visitorKey, userLimit, plentifulKey, plenty)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return 0, err
	}
	host, port, _ := net.SplitHostPort(listen)
	env := []string{
		"GRPC_HOST=" + host, "GRPC_PORT=" + port, "HOST=" + host, "DEBUG_HOST=" + host,
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + store, "LOCAL_CACHE_SIZE_IN_BYTES=1048576", "DISABLE_STATS=true", "LOG_LEVEL=ERROR",
		"RUNTIME_ROOT=" + filepath.Join(s.dir, "ratelimit"), "RUNTIME_SUBDIRECTORY=keys", "RUNTIME_WATCH_ROOT=false",
	}
	for _, variable := range []string{"PORT", "DEBUG_PORT"} {
		free, err := freeport.Port()
		if err != nil {
			return 0, err
		}
		env = append(env, fmt.Sprintf("%s=%d", variable, free))
	}
	return s.run("service_cmd", env)
}
