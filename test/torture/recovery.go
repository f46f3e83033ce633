package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/testing/devcluster"
	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
)

const (
	// startTime is how long a part may take to start on a machine that is busy.
	startTime = 3 * time.Minute
	// recoveryTime is how long after the last fault everything has to serve again, or
	// after the clock of each store has caught up with its time before it was set back:
	// until then nothing may be granted.
	recoveryTime = 60 * time.Second
	// answerTime is how long after that a process may take to say what it holds.
	answerTime = 30 * time.Second
	// servesFor is how long each limit has to be used up for that, in windows.
	servesFor = 4
)

// awaitServing returns when every policy is programmed and every team has had what its limit
// allows, of long windows something, or with what is not so when that takes too long. Teams
// need not have it at the same time: a machine that is short of processors loses the end of
// a window here and there.
func (w *world) awaitServing(ctx context.Context, atMost time.Duration) error {
	began := time.Now()
	deadline := began.Add(atMost)
	for _, s := range w.stores {
		deadline = later(deadline, s.catchesUp().Add(atMost))
	}
	deadline = later(deadline, w.hubCatchesUp().Add(atMost))
	served := map[string]bool{}
	for {
		err := w.serving(began, served)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("after %s: %w", time.Since(began).Round(time.Second), err), w.refusals(ctx))
		}
		if !sleep(ctx, 200*time.Millisecond) {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// refusals returns what sidecars answer now to one request of each shop, except those
// that are let through.
func (w *world) refusals(ctx context.Context) error {
	endpoints, err := w.endpoints(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range endpoints {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.Proxy, http.NoBody)
		if err != nil {
			return err
		}
		r.Header.Set(teamHeader, teams[0])
		answer, err := w.http.Do(r)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s/%s: %w", e.Namespace, e.Pod, err))
			continue
		}
		body, _ := io.ReadAll(io.LimitReader(answer.Body, 1024)) // as far as it came
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			errs = append(errs, fmt.Errorf("%s/%s: %s, Retry-After %s, %s", e.Namespace, e.Pod, answer.Status, answer.Header.Get("Retry-After"), body))
		}
	}
	return errors.Join(errs...)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// serving returns an error that names what did not serve since an instant. It notes what
// did.
func (w *world) serving(since time.Time, served map[string]bool) error {
	var errs []error
	// Any interval of n+1 windows holds n whole ones.
	from := time.Now().Add(-(servesFor + 1) * window)
	if served["budget"] = served["budget"] || !w.federated; !served["budget"] {
		err := w.budgetServes(from)
		served["budget"] = err == nil && !from.Before(since)
		errs = append(errs, err)
	}
	for _, s := range w.shops {
		if c := s.newest(); !c.programmed {
			errs = append(errs, fmt.Errorf("%s is not programmed", s.name))
		}
		if s.drawn {
			continue
		}
		if s.once > 0 {
			errs = append(errs, s.servesAny(since))
			continue
		}
		for _, team := range teams {
			err := s.serves(team, from, since)
			if name := s.name + " " + team; !served[name] {
				served[name] = err == nil && !from.Before(since)
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// serves returns an error when a team did not get what its limit allows in the windows from
// an instant on, with what it got since another one.
func (s *shop) serves(team string, from, since time.Time) error {
	n, least := s.since(team, from), int(servesFor*s.limit()*9/10)
	if n >= least {
		return nil
	}
	sum := func(kind func(*traffic.Outcomes) *traffic.Series) int64 { return s.load.Sum(from, time.Now(), kind) }
	return fmt.Errorf("%s serves team %s %d in %d windows, want %d; in each window before %v; of %d requests of all teams %d failed",
		s.name, team, n, servesFor, least, s.each(team, since),
		sum(func(o *traffic.Outcomes) *traffic.Series { return &o.Offered }), sum(func(o *traffic.Outcomes) *traffic.Series { return &o.Failed }))
}

// each returns what reached the application from a team in each span of a window's length
// since an instant.
func (s *shop) each(team string, from time.Time) []int {
	all := make([]int, time.Since(from)/window+1)
	for _, a := range s.of(team) {
		if i := int(a.reached.Sub(from) / window); a.reached.After(from) && i < len(all) {
			all[i]++
		}
	}
	return all
}

// servesAny returns an error when a team got nothing of a long window since an instant,
// although no counter was lost, and the limit is so large that it is not used up.
func (s *shop) servesAny(since time.Time) error {
	for _, team := range teams {
		switch used := len(s.of(team)); {
		case used == 0: // the first use is served at once
			return fmt.Errorf("%s serves team %s nothing", s.name, team)
		case s.ample && !s.store.forgot.Load() && s.since(team, since) == 0:
			return fmt.Errorf("%s serves team %s nothing, with %d of %d used", s.name, team, used, s.once)
		}
	}
	return nil
}

// awaitMeasured gives the status time to follow: it is judged by what it says then.
func (w *world) awaitMeasured(ctx context.Context, atMost time.Duration) {
	deadline := time.Now().Add(atMost)
	for _, s := range w.shops {
		for strings.HasPrefix(s.newest().within, "Unknown") && s.once == 0 && time.Now().Before(deadline) && sleep(ctx, 200*time.Millisecond) {
			continue
		}
	}
}

// footprint is what a process holds.
type footprint struct{ goroutines, descriptors, memory float64 }

// awaitFootprints is footprints, tried for a while: a process may start again or be slow.
func (w *world) awaitFootprints(ctx context.Context, atMost time.Duration) (map[string]footprint, error) {
	for deadline := time.Now().Add(atMost); ; {
		found, err := w.footprints(ctx)
		if err == nil || time.Now().After(deadline) || !sleep(ctx, time.Second) {
			return found, err
		}
	}
}

// awaitNoLeak returns when processes hold about what they held before, or with what they
// hold more when that takes too long: connections that a fault left idle are closed first.
func (w *world) awaitNoLeak(ctx context.Context, before map[string]footprint, atMost time.Duration) error {
	for deadline := time.Now().Add(atMost); ; {
		after, err := w.footprints(ctx)
		if err == nil {
			err = leaks(before, after)
		}
		if err == nil || time.Now().After(deadline) || !sleep(ctx, time.Second) {
			return err
		}
	}
}

// footprints reads what each process of ours holds, by its name.
func (w *world) footprints(ctx context.Context) (map[string]footprint, error) {
	addresses := map[string]string{}
	for _, s := range w.sites {
		for i, c := range s.controllers {
			addresses[s.node(nodes+i)] = c.MetricsAddress()
		}
	}
	endpoints, err := w.endpoints(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range endpoints {
		addresses[e.Namespace+"/"+e.Pod] = e.Admin
	}
	found := map[string]footprint{}
	for name, address := range addresses {
		f, err := scrape(ctx, w.http, address)
		if err != nil {
			return nil, fmt.Errorf("what %s holds is not known: %w", name, err)
		}
		found[name] = footprint{f["go_goroutines"], f["process_open_fds"], f["process_resident_memory_bytes"]}
	}
	return found, nil
}

// leaks compares what processes hold with what they held before, at the same load; those
// of controllers with what one held that led. A process may hold more, as room for work
// that is under way by chance.
func leaks(before, after map[string]footprint) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(after)) {
		b, ok := before[name]
		for other, f := range before {
			if strings.HasPrefix(name, "control-plane") && strings.HasPrefix(other, "control-plane") {
				b = footprint{max(b.goroutines, f.goroutines), max(b.descriptors, f.descriptors), max(b.memory, f.memory)}
			}
		}
		if !ok {
			continue
		}
		a := after[name]
		for what, grew := range map[string][3]float64{
			"goroutines": {b.goroutines, a.goroutines, 60}, "descriptors": {b.descriptors, a.descriptors, 60}, "bytes": {b.memory, a.memory, 64 << 20},
		} {
			if grew[1] > 1.5*grew[0]+grew[2] {
				errs = append(errs, fmt.Errorf("%s holds %.0f %s, and held %.0f before the first fault", name, grew[1], what, grew[0]))
			}
		}
	}
	return errors.Join(errs...)
}

// podsOf returns the names of a shop's pods.
func (s *site) podsOf(ctx context.Context, namespace string) ([]string, error) {
	var list corev1.PodList
	if err := s.kube.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var names []string
	for _, p := range list.Items {
		if slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == inject.ContainerName }) {
			names = append(names, p.Name)
		}
	}
	return names, nil
}

// endpoints returns the sidecars of all clusters.
func (w *world) endpoints(ctx context.Context) (all []devcluster.Endpoint, err error) {
	for _, s := range w.sites {
		found, err := s.cluster.Endpoints(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func lines(err error) string { return strings.ReplaceAll(err.Error(), "\n", "\n  ") }
