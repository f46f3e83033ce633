package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// budgeted is the limit of all clusters together in a window.
const budgeted = 2 * limit

// limitOfTeam returns what a team may have of it: as much as others, or by an override more. All
// teams together may have more than the budget, so both bind.
func limitOfTeam(team string) int64 {
	if team == ownTeam {
		return limit * 3 / 2
	}
	return limit
}

// ownTeam is the one with the override.
var ownTeam = teams[0]

//go:embed budget.yaml
var budgetManifest string

// openBudget starts a shop in each cluster, whose policies draw from one budget. The hub
// is in the first cluster; the other one has the credentials that it made.
func (w *world) openBudget(ctx, background context.Context) error {
	t := short("budget")
	t.drawn = true
	for _, at := range w.sites {
		s := &shop{terms: t, site: at}
		s.name += "-" + at.name()
		hub := ""
		if at.number > 0 {
			hub = fmt.Sprintf(`{endpoint: "%s", secretRef: {name: weir-hub}}`, w.sites[0].hub.Address())
			if err := w.introduce(ctx, at, s.name); err != nil {
				return err
			}
		}
		s.limits = []limitOf{{from: time.Now(), limit: budgeted, version: 1}}
		values := map[string]string{
			"SHOP": s.name, "LIMIT": strconv.Itoa(budgeted), "WINDOW": window.String(), "HUB": hub, "MEMBER": w.sites[len(w.sites)-1].name(), "SELF": w.sites[0].name(),
			"KEY_HEADER": teamHeader, "TEAM_LIMIT": strconv.Itoa(limit), "OWN_TEAM": ownTeam, "OWN_LIMIT": strconv.FormatInt(limitOfTeam(ownTeam), 10),
		}
		manifest := os.Expand(budgetManifest, func(name string) string { return values[name] })
		if hub == "" {
			manifest = strings.ReplaceAll(manifest, "  hub: \n", "")
		}
		if err := w.openPods(ctx, background, s, manifest); err != nil {
			return err
		}
	}
	return nil
}

// introduce gives a cluster the credentials by which the hub knows it.
func (w *world) introduce(ctx context.Context, at *site, namespace string) error {
	var made corev1.Secret
	for {
		err := w.sites[0].kube.Get(ctx, client.ObjectKey{Namespace: "weir-system", Name: "weir-member-" + at.name()}, &made)
		if err == nil && len(made.Data["tls.crt"]) > 0 {
			break
		}
		if !sleep(ctx, 200*time.Millisecond) {
			return errors.Join(ctx.Err(), err)
		}
	}
	if err := at.kube.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	return at.kube.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "weir-hub", Namespace: namespace}, Type: made.Type, Data: made.Data,
	})
}

// lookAtBudget notes what the status of the budget says.
func (s *shop) lookAtBudget(ctx context.Context) {
	var b v1alpha1.FederatedBudget
	if err := s.site.kube.Get(ctx, client.ObjectKey{Namespace: s.name, Name: "world"}, &b); err != nil {
		return // the API server may be away
	}
	s.claim(claimOf(b.Status.Conditions, b.Status.ObservedGeneration == b.Generation, v1alpha1.ConnectedCondition, b.Status.Overshoot))
}

// budgetEras returns how the clock of the hub ran: that of the controller that leads. One
// that stood still until another one led grants what it had set aside by its own.
func (w *world) budgetEras() []era {
	hub := w.sites[0]
	hub.leads.Lock()
	spells := slices.Clone(hub.leads.spells)
	hub.leads.Unlock()
	var all []era
	for i, s := range spells {
		from, until := s.first.Add(-time.Hour), time.Now().Add(time.Hour)
		if i > 0 {
			from = spells[i-1].last
		}
		if i+1 < len(spells) {
			until = spells[i+1].first.Add(outlives)
		}
		node := w.nodes[hub.node(nodes+s.controller)]
		for _, e := range erasOf(node.Eras()) {
			if e.until.Before(from) || e.from.After(until) {
				continue
			}
			e.from, e.until = later(e.from, from), sooner(e.until, until)
			all = append(all, e)
		}
	}
	return all
}

// outlives is for how long a leader that stood still may grant what it had set aside when
// another one leads.
const outlives = 15 * time.Second

// hubCatchesUp returns when every clock that the hub may grant by shows the newest instant
// that any of them showed.
func (w *world) hubCatchesUp() (at time.Time) {
	if !w.federated {
		return at
	}
	hub, newest := w.sites[0], time.Time{}
	for i := range controllers {
		eras := w.nodes[hub.node(nodes+i)].Eras()
		for j, e := range eras {
			ended := time.Now()
			if j+1 < len(eras) {
				ended = eras[j+1].From
			}
			newest = later(newest, e.At(ended))
		}
	}
	for i := range controllers {
		shows := time.Now().Add(w.nodes[hub.node(nodes+i)].Offset())
		at = later(at, time.Now().Add(newest.Sub(shows)))
	}
	return at
}

// budgetServes returns an error when the clusters did not use what the budget allows since
// an instant servesFor whole windows ago.
func (w *world) budgetServes(from time.Time) error {
	total := 0
	var parts []int
	for _, s := range w.shops {
		if !s.drawn {
			continue
		}
		n := 0
		for _, team := range teams {
			n += s.since(team, from)
		}
		total += n
		parts = append(parts, n)
	}
	if least := servesFor * budgeted * 9 / 10; total < least || slices.Min(parts) < least/5 {
		return fmt.Errorf("the budget serves %d in %d windows, want %d, each cluster a fair part", parts, servesFor, least)
	}
	return nil
}

// judgeBudget holds what the applications of all clusters received against the limit of
// their budget, and what the budget's status says of it.
func (w *world) judgeBudget() (r result, err error) {
	var all []arrival
	var drawn []*shop
	byTeam := map[string][]arrival{}
	for _, s := range w.shops {
		if s.drawn {
			drawn = append(drawn, s)
			for _, team := range teams {
				byTeam[team] = append(byTeam[team], s.of(team)...)
				all = append(all, s.of(team)...)
			}
		}
	}
	eras := w.budgetEras()
	v := judgement{window: window, eras: eras, limit: func(windowID) int64 { return budgeted }}.of(all)
	w.say("the budget of %d clusters: %s", len(drawn), v)
	r.windows, r.arrivals = v.windows, v.arrivals
	var errs []error
	if v.over > 0 {
		r.over = len(v.full)
		errs = append(errs, fmt.Errorf("%d requests of all clusters were admitted beyond the budget, in the windows %v: %v", v.over, v.full, counts(v)))
	}
	for _, team := range teams {
		v := judgement{window: window, eras: eras, limit: func(windowID) int64 { return limitOfTeam(team) }}.of(byTeam[team])
		w.say("team %s of %d clusters: %s", team, len(drawn), v)
		r.windows, r.arrivals = r.windows+v.windows, r.arrivals+v.arrivals
		if v.over > 0 {
			r.over += len(v.full)
			errs = append(errs, fmt.Errorf("%d requests of team %s of all clusters were admitted beyond its limit, in the windows %v: %v", v.over, team, v.full, counts(v)))
		}
	}
	var worst overshoot
	for id := range v.most {
		worst.most = max(worst.most, v.most[id]-budgeted)
		worst.least = max(worst.least, v.least[id]-budgeted)
	}
	for _, s := range drawn {
		c := s.newest()
		w.say("%s: status says %s, worst %d, bound %d; it was %d to %d", s.name, c.within, c.worst, c.bound, worst.least, worst.most)
		lies := s.lies(worst, false)
		r.lies += len(lies)
		errs = append(errs, lies...)
	}
	return r, errors.Join(errs...)
}

// counts says what the windows of a verdict hold that are too full.
func counts(v verdict) (all []string) {
	for _, id := range v.full {
		all = append(all, fmt.Sprintf("%d to %d", v.least[id], v.most[id]))
	}
	return all
}
