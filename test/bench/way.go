package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
	"github.com/weir-dev/weir/internal/testing/freeport"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/test/bench/traffic"
)

// callers are the connections that each way is opened with.
const callers = 32

// A way leads to the app: straight, or through a proxy that runs as a process.
type way struct {
	name    string
	address string
	calls   string // the address for calls of gRPC
	pid     int
	callers traffic.HTTP1
}

// ways are all of them, and the processes behind them.
type ways struct {
	processes

	all []*way // as the constants say, and then the sidecars of other checkouts
}

const (
	straight = iota
	barely
	sidecar
	haproxy
	nginx
)

// checkouts are those whose sidecars are measured along with this one's.
var checkouts = flag.String("beside", "", "in the sections of the proxy, also measure the sidecars of the checkouts in these `directories`, apart by commas")

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
	if _, err = w.start("bare ReverseProxy", nil, "peers", func(listen string) []string { return []string{"bare", listen, app.address} }); err != nil {
		return w, err
	}
	if err := w.startSidecar("weir", "sidecar", app.address); err != nil {
		return w, err
	}
	if err := errors.Join(w.startHAProxy(app.address), w.startNginx(app.address)); err != nil {
		return w, err
	}
	return w, w.startBeside(app.address)
}

func (w *ways) startBeside(app string) error {
	for i, checkout := range strings.FieldsFunc(*checkouts, func(r rune) bool { return r == ',' }) {
		other := processes{dir: filepath.Join(w.dir, fmt.Sprint("beside", i))}
		if err := other.build(checkout, "./cmd/sidecar"); err != nil {
			return err
		}
		if err := w.startSidecar("weir, "+filepath.Base(checkout), filepath.Join(other.dir, "sidecar"), app); err != nil {
			return err
		}
	}
	return nil
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
	opened := &way{name: name, address: listen, calls: listen, pid: pid}
	// A store that is new serves no window that began before it.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		var one traffic.HTTP1 // until it is served, so that few connections come in vain
		if one, err = traffic.DialHTTP1(listen, 1, request); err == nil {
			one.Close()
			opened.callers, err = traffic.DialHTTP1(listen, callers, request)
		}
		if err == nil {
			w.all = append(w.all, opened)
			return opened, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s does not serve: %w", name, err)
		}
	}
}

// limitWindow is that of the sidecars' limit.
const limitWindow = 5 * time.Second

// startSidecar runs a sidecar as in a pod, with a limit far above the load that it leases
// from a Redis.
func (w *ways) startSidecar(name, program, app string) error {
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
		Limits:             []policy.Limit{{Name: "all", Rates: []limiter.Rate{{Limit: plenty, Window: limiter.Micros(limitWindow.Microseconds())}}}},
	}}})
	if err != nil {
		return err
	}
	packed, err := policy.Pack(data)
	if err != nil {
		return err
	}
	_, appPort, _ := net.SplitHostPort(app)
	_, err = w.start(name, []string{"WEIR_POD_NAMESPACE=bench", "WEIR_SNAPSHOT=" + packed, "WEIR_SANDBOX_IP=127.0.0.1"}, program, func(listen string) []string {
		_, port, _ := net.SplitHostPort(listen)
		return []string{"--inbound", port + ":" + appPort, "--check-address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0", "--rls-address", ""}
	})
	if err == nil {
		// It lets requests through before it has reached the store, and refuses some once it has.
		time.Sleep(limitWindow + time.Second)
	}
	return err
}
