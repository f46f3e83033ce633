package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster"
	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
)

const (
	window   = 5 * time.Second
	limit    = 30 // units of each team in a window
	pressure = 3  // times as much is asked for
)

// teams are the values of the limits' key.
var teams = []string{"red", "blue"}

const teamHeader = "X-Team"

//go:embed shop.yaml
var shopManifest string

//go:embed pod.yaml
var podManifest string

// terms are how a shop is limited.
type terms struct {
	name   string
	memory v1alpha1.StoreMemory
	onLoss v1alpha1.OnMemoryLoss
	action v1alpha1.FailureAction
	window time.Duration
	drawn  bool // from a budget of several clusters
	at     int  // number of the store that keeps its counters at first
}

// A shop is one policy, the application that it limits, and the load on that.
type shop struct {
	terms
	site   *site
	store  *store   // that keeps its counters at first
	stores []*store // that its policy may be moved to
	once   int64    // the limit of a window that outlasts the run; 0 for short windows
	ample  bool     // once is not used up, with all leases whose answers are lost
	load   *traffic.Load
	stop   context.CancelFunc

	looked time.Time // the last look at the status; only the watcher uses it

	mu       sync.Mutex
	arrivals map[string][]arrival // by team
	claims   []claim
	starts   []time.Time // when a sidecar was killed, and is another one from then on
	limits   []limitOf   // in order; never empty
	seats    []seat      // in order; never empty
}

// shopsOf returns the shops that keep their counters in the stores.
func (w *world) shopsOf(stores []*store) (shops []*shop) {
	for _, on := range stores {
		for _, t := range on.shops {
			s := &shop{terms: t, site: w.sites[0], store: on, stores: stores, seats: []seat{{store: on}}}
			s.name += "-" + on.name
			s.at = on.number
			if s.window > w.lasts {
				// As much as is asked for in two thirds of the run.
				s.once = max(int64(pressure*limit)*int64(w.lasts/window)*2/3, limit)
				if s.ample = w.random.IntN(2) == 0; s.ample {
					s.once *= 20
				}
			}
			shops = append(shops, s)
		}
	}
	return shops
}

// openShops starts the shops of the layout.
func (w *world) openShops(ctx, background context.Context) error {
	if w.federated {
		if err := w.openBudget(ctx, background); err != nil {
			return err
		}
	}
	for _, s := range w.shopsOf(w.stores) {
		if err := w.openShop(ctx, background, s); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) openShop(ctx, background context.Context, s *shop) error {
	s.limits = []limitOf{{from: time.Now(), limit: max(limit, s.once), version: 1}}
	store, err := json.Marshal(v1alpha1.PolicyStore{Store: s.store.api, Memory: s.memory, OnMemoryLoss: s.onLoss})
	if err != nil {
		return err
	}
	values := map[string]string{
		"SHOP": s.name, "KEY_HEADER": teamHeader, "LIMIT": strconv.FormatInt(s.limit(), 10), "WINDOW": s.window.String(),
		"STORE": string(store), "ACTION": string(s.action),
	}
	return w.openPods(ctx, background, s, os.Expand(shopManifest, func(name string) string { return values[name] }))
}

// openPods applies what limits a shop, and starts its pods and the load on them.
func (w *world) openPods(ctx, background context.Context, s *shop, limits string) error {
	s.arrivals = map[string][]arrival{}
	values := map[string]string{"SHOP": s.name, "TALLY": w.tally.Address()}
	fill := func(text string) string { return os.Expand(text, func(name string) string { return values[name] }) }
	manifest := []string{limits}
	for i := range nodes {
		values["NODE"] = nodeLabels[i]
		manifest = append(manifest, fill(podManifest))
	}
	if err := s.site.cluster.Apply(ctx, []byte(strings.Join(manifest, ""))); err != nil {
		return err
	}
	s.load = traffic.NewLoad(float64(pressure*limit*len(teams)) / window.Seconds())
	s.load.Prepare = func(r *http.Request) {
		team := teams[rand.IntN(len(teams))]
		r.Header.Set(teamHeader, team)
		r.Header.Set(traffic.MarkHeader, fmt.Sprintf("%s %s %d", s.name, team, time.Now().UnixMicro()))
	}
	running, stop := context.WithCancel(background)
	s.stop = stop
	w.running.Go(func() error { s.load.Run(running); return nil })
	w.shops = append(w.shops, s)
	return nil
}

// arrived notes a request that reached an application.
func (w *world) arrived(_ string, at time.Time, mark string) {
	fields := strings.Fields(mark)
	if len(fields) != 3 {
		return // not ours
	}
	micros, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return
	}
	for _, s := range w.shops {
		if s.name == fields[0] {
			s.mu.Lock()
			s.arrivals[fields[1]] = append(s.arrivals[fields[1]], arrival{sent: time.UnixMicro(micros), reached: at})
			s.mu.Unlock()
		}
	}
}

func (s *shop) aim(endpoints []devcluster.Endpoint) {
	var targets []traffic.Target
	for _, e := range endpoints {
		if e.Namespace == s.name {
			targets = append(targets, traffic.Target{Pod: e.Pod, Address: e.Proxy})
		}
	}
	s.load.SetTargets(targets)
}

// restarts notes that a sidecar is killed.
func (s *shop) restarts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts = append(s.starts, time.Now())
}

// restartedIn reports whether a sidecar restarted in a span of time.
func (s *shop) restartedIn(from, until time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.starts, func(at time.Time) bool { return at.After(from) && at.Before(until) })
}

// of returns what reached the application from a team.
func (s *shop) of(team string) []arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]arrival(nil), s.arrivals[team]...)
}

// since counts what reached the application from a team since an instant.
func (s *shop) since(team string, from time.Time) (n int) {
	for _, a := range s.of(team) {
		if a.reached.After(from) {
			n++
		}
	}
	return n
}
