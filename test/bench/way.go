package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
	"github.com/weir-dev/weir/internal/testing/freeport"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// A way leads to the app: straight, or through a proxy that runs as a process.
type way struct {
	name    string
	address string
	pid     int
	callers []caller
}

// ways are all of them, and the processes behind them.
type ways struct {
	processes

	all []*way // straight, the bare proxy twice, ours, others
}

const (
	straight = iota
	barely
	barelyToo
	sidecar
)

// openWays starts the app and every proxy, or nothing.
func openWays() (w *ways, err error) {
	w = &ways{}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if err := w.settle(); err != nil {
		return w, err
	}
	if err := errors.Join(w.build(".", "./peers"), w.build(filepath.Join("..", ".."), "./cmd/sidecar")); err != nil {
		return w, err
	}
	app, err := w.start("direct", nil, "peers", func(listen string) []string { return []string{"app", listen} })
	if err != nil {
		return w, err
	}
	for _, name := range []string{"bare ReverseProxy", "bare ReverseProxy again"} {
		if _, err = w.start(name, nil, "peers", func(listen string) []string { return []string{"bare", listen, app.address} }); err != nil {
			return w, err
		}
	}
	if err := w.startSidecar(app.address); err != nil {
		return w, err
	}
	if err := w.startHAProxy(app.address); err != nil {
		return w, err
	}
	return w, nil
}

// start runs a program that listens where it is set to, and waits until it does.
func (w *ways) start(name string, env []string, program string, args func(listen string) []string) (*way, error) {
	port, err := freeport.Port()
	if err != nil {
		return nil, err
	}
	listen := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	pid, err := w.run(program, env, args(listen)...)
	if err != nil {
		return nil, err
	}
	opened := &way{name: name, address: listen, pid: pid}
	// A store that is new serves no window that began before it.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if opened.callers, err = dial(listen); err == nil {
			w.all = append(w.all, opened)
			return opened, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s does not serve: %w", name, err)
		}
	}
}

// startSidecar runs the sidecar as in a pod, with a limit far above the load that it
// leases from a Redis.
func (w *ways) startSidecar(app string) error {
	store, err := servers.Redis(context.Background(), w.dir)
	if err != nil {
		return err
	}
	w.stopped = append(w.stopped, store.Kill)
	data, _, err := policy.Encode(policy.Snapshot{Cluster: "bench", Policies: []policy.Policy{{
		Namespace: "bench", Name: "wide", Generation: 1, Mode: policy.Enforce,
		Store:              policy.Store{Type: policy.RedisStore, Address: store.Address},
		Consistency:        policy.Consistency{Mode: policy.Leased, Size: policy.Adaptive, Batch: 1000, Min: 1, Max: 1_000_000, LowWater: 20, Expiry: policy.Coupled},
		OnStoreUnavailable: policy.Allow, // this measures the way, not a store on a busy machine
		Limits:             []policy.Limit{{Name: "all", Rates: []limiter.Rate{{Limit: plenty, Window: 5 * limiter.Second}}}},
	}}})
	if err != nil {
		return err
	}
	packed, err := policy.Pack(data)
	if err != nil {
		return err
	}
	_, appPort, _ := net.SplitHostPort(app)
	_, err = w.start("weir", []string{"WEIR_POD_NAMESPACE=bench", "WEIR_SNAPSHOT=" + packed, "WEIR_SANDBOX_IP=127.0.0.1"}, "sidecar", func(listen string) []string {
		_, port, _ := net.SplitHostPort(listen)
		return []string{"--inbound", port + ":" + appPort, "--check-address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0", "--rls-address", ""}
	})
	return err
}

const haproxyConfig = `
global
  maxconn 1000
defaults
  mode http
  option http-keep-alive
  timeout connect 5s
  timeout client 75s
  timeout server 75s
frontend f
  bind %s
  option forwardfor
  default_backend b
backend b
  http-reuse always
  server app %s
`

// startHAProxy runs haproxy with what a plain reverse proxy needs.
func (w *ways) startHAProxy(app string) error {
	program, err := exec.LookPath("haproxy")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/haproxy")
	}
	if err != nil {
		return errors.New("haproxy is not installed: install it with your system's package manager; `make bench` does")
	}
	_, err = w.start("haproxy", nil, program, func(listen string) []string {
		file := filepath.Join(w.dir, "haproxy.cfg")
		must(os.WriteFile(file, fmt.Appendf(nil, haproxyConfig, listen, app), 0o600))
		return []string{"-q", "-db", "-f", file}
	})
	return err
}

// A residence is what a process has in memory, in bytes.
type residence struct {
	resident float64
	own      float64 // of that, not pages of the program's file, which a node holds once
}

// larger returns the larger figures of two residences.
func (r residence) larger(o residence) residence {
	return residence{resident: max(r.resident, o.resident), own: max(r.own, o.own)}
}

func residenceOf(pid int) (r residence, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return r, err
	}
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
		switch name {
		case "VmRSS":
			r.resident = kib * 1024
		case "RssAnon":
			r.own = kib * 1024
		}
	}
	if r.resident == 0 {
		return r, fmt.Errorf("process %d does not say how large it is", pid)
	}
	return r, nil
}
