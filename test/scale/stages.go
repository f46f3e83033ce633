package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// sharedPolicies is how many policies select every sidecar of the last stage.
const sharedPolicies = 100

var shopPolicy = types.NamespacedName{Namespace: shopSpace, Name: "limit"}

// measureSidecars measures sidecars that one policy selects.
func measureSidecars(ctx context.Context, w *world) (section, error) {
	s := section{head: []string{"sidecars", "connected after", "RSS", "most", "CPU at rest", "edit p50", "p99", "Programmed after"}}
	empty, err := w.atRest(ctx)
	if err != nil {
		return s, err
	}
	s.row("0", "", mib(empty.rss), mib(empty.most), percent(empty.share), "", "", "")
	f, err := newSidecars(ctx, w)
	if err != nil {
		return s, err
	}
	defer f.close()
	if err := w.kube.Create(ctx, policyFor(shopPolicy, shopApp, 1000)); err != nil {
		return s, err
	}
	for _, size := range w.sidecars {
		if err := f.measure(ctx, &s, size, empty, shopPolicy); err != nil {
			return s, err
		}
	}
	n := count(len(f.all))
	return s, f.storms(ctx, &s, n)
}

// measureShared measures sidecars that a hundred policies select.
func measureShared(ctx context.Context, w *world) (section, error) {
	s := section{head: []string{"sidecars", "connected after", "RSS", "most", "CPU at rest", "edit p50", "p99", "Programmed after"}}
	f, err := newSidecars(ctx, w)
	if err != nil {
		return s, err
	}
	defer f.close()
	name := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: shopSpace, Name: fmt.Sprintf("limit-%03d", i)}
	}
	if err := each(sharedPolicies, func(i int) error { return w.kube.Create(ctx, policyFor(name(i), shopApp, 1000)) }); err != nil {
		return s, err
	}
	empty, err := w.atRest(ctx)
	if err != nil {
		return s, err
	}
	s.row("0", "", mib(empty.rss), mib(empty.most), percent(empty.share), "", "", "")
	for _, size := range w.shared {
		if err := f.measure(ctx, &s, size, empty, name(7)); err != nil {
			return s, err
		}
	}
	s.last = s.last[len(s.last)-1:] // memory and CPU have no goal under a hundred policies
	s.last[0].figure = fmt.Sprintf("edit of 1 of %d policies, %s sidecars: enforced, p99", sharedPolicies, count(len(f.all)))
	return s, nil
}

// measure adds a row for a number of sidecars.
func (f *sidecars) measure(ctx context.Context, s *section, size int, empty idle, name types.NamespacedName) error {
	w := f.world
	connected, err := f.grow(ctx, size)
	if err != nil {
		return err
	}
	w.say("%d sidecars connected after %s", size, seconds(connected))
	r, err := w.atRest(ctx)
	if err != nil {
		return err
	}
	for _, kind := range []string{"heap", "profile?seconds=5"} {
		if err := w.keepProfile(ctx, w.leads, kind, fmt.Sprintf("%.4s-%d-sidecars", kind, size)); err != nil {
			return err
		}
	}
	e, err := f.changes(ctx, name)
	if err != nil {
		return err
	}
	p99 := quantile(e.delays, .99)
	w.say("%d sidecars: %.0f MiB, %s, edit p99 %s", size, r.rss, percent(r.share), seconds(p99))
	s.row(count(size), seconds(connected), mib(r.rss), mib(r.most), percent(r.share), seconds(quantile(e.delays, .5)), seconds(p99), seconds(e.programmed))
	s.point("memory", size, r.rss-empty.rss)
	s.point("CPU at rest", size, r.share-empty.share)
	s.point("edit p99", size, p99.Seconds())
	s.last = []goal{
		{count(size) + " sidecars at rest, reporting", "≤ 256 MiB, ≤ 25 % of a core", fmt.Sprintf("%s MiB, %s", mib(r.rss), percent(r.share))},
		{fmt.Sprintf("edit of the policy of %s sidecars: enforced, p99", count(size)), "≤ 2 s", seconds(p99)},
	}
	return nil
}
