package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

const (
	spaces = 100 // namespaces that the policies are in
	// converge is more than anything may take that has to come.
	converge = 10 * time.Minute
	creators = 8
)

// measurePolicies measures policies that select nothing.
func measurePolicies(ctx context.Context, w *world) (section, error) {
	s := section{head: []string{"policies", "created in", "all Accepted after", "p50", "p99", "RSS", "most", "CPU at rest", "writes/s", "metrics page", "writes for each", "CPU for each: leader", "etcd and Kubernetes", "this tool"}}
	if err := each(spaces, func(i int) error { return w.createNamespace(ctx, space(i)) }); err != nil {
		return s, err
	}
	empty, err := w.atRest(ctx)
	if err != nil {
		return s, err
	}
	s.row("0", "", "", "", "", mib(empty.rss), mib(empty.most), percent(empty.share), decimal(empty.writes), "", "", "", "", "")
	var total time.Duration
	n := 0
	for _, size := range w.policies {
		before, err := w.cost(ctx)
		if err != nil {
			return s, err
		}
		created, took, delays, err := w.createPolicies(ctx, n, size)
		if err != nil {
			return s, err
		}
		after, err := w.cost(ctx)
		if err != nil {
			return s, err
		}
		one := after.since(before).of(size - n)
		n, total = size, total+took
		r, err := w.atRest(ctx)
		if err != nil {
			return s, err
		}
		if err := w.keepProfile(ctx, w.leads, "heap", fmt.Sprintf("heap-%d-policies", size)); err != nil {
			return s, err
		}
		bytes, scraped, err := w.scrape(ctx, w.leads)
		if err != nil {
			return s, err
		}
		w.say("%d policies: accepted after %s more, %.0f MiB", size, seconds(took), r.rss)
		s.row(count(size), seconds(created), seconds(took), seconds(quantile(delays, .5)), seconds(quantile(delays, .99)),
			mib(r.rss), mib(r.most), percent(r.share), decimal(r.writes), fmt.Sprintf("%.1f MB in %s", float64(bytes)/1e6, seconds(scraped)),
			fmt.Sprintf("%.1f", one.writes), milliseconds(one.leader), milliseconds(one.servers), milliseconds(one.tool))
		s.point("memory", size, r.rss-empty.rss)
		s.point("time to Accepted", size, total.Seconds())
		s.point("metrics page", size, float64(bytes))
		s.last = []goal{
			{
				fmt.Sprintf("%s policies in %d namespaces, at rest", count(size), spaces), "≤ 150 MiB, ≤ 2 % of a core, 0 writes/s",
				fmt.Sprintf("%s MiB, %s, %s writes/s", mib(r.rss), percent(r.share), decimal(r.writes)),
			},
			{fmt.Sprintf("%s policies created → all Accepted", count(size)), "≤ 60 s", seconds(total)},
			{fmt.Sprintf("a scrape of %s policies", count(size)), "≤ 1 s", seconds(scraped)},
		}
	}
	floor, err := w.floor(ctx, n)
	s.notes = append(s.notes, floor)
	return s, err
}

// createPolicies creates those numbered from from to below to, and waits until all are
// accepted. It returns how long creating them took, how long all of it did, and how long
// each took from its creation to Accepted.
func (w *world) createPolicies(ctx context.Context, from, to int) (created, all time.Duration, delays []time.Duration, err error) {
	began := time.Now()
	at := make([]time.Time, to-from)
	err = each(to-from, func(i int) error {
		at[i] = time.Now()
		return w.kube.Create(ctx, policyFor(policyName(from+i), policyName(from+i).Name, 1000))
	})
	if err != nil {
		return 0, 0, nil, err
	}
	created = time.Since(began)
	if err := await(ctx, converge, "that all policies are accepted", func() bool { return w.watch.accepted() >= to }); err != nil {
		return created, 0, nil, fmt.Errorf("%d of %d are: %w", w.watch.accepted(), to, err)
	}
	all = time.Since(began)
	for i := range at {
		delays = append(delays, w.watch.of(policyName(from+i)).accepted.Sub(at[i]))
	}
	return created, all, delays, nil
}

func space(i int) string { return fmt.Sprintf("team-%03d", i%spaces) }

func policyName(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: space(i), Name: fmt.Sprintf("policy-%05d", i)}
}

// policyFor returns a policy for the pods of an application: a limit in 10 seconds.
func policyFor(name types.NamespacedName, app string, limit int64) *v1alpha1.RateLimitPolicy {
	p := &v1alpha1.RateLimitPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	p.Spec.PodSelector.MatchLabels = map[string]string{"app": app}
	p.Spec.Limits = []v1alpha1.Limit{{Name: "all", Rates: []v1alpha1.Rate{{Limit: limit, Window: "10s"}}}}
	return p
}

func (w *world) createNamespace(ctx context.Context, name string) error {
	return client.IgnoreAlreadyExists(w.kube.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// each calls f for 0 to n−1, some at a time, and again after what passes by itself.
func each(n int, f func(i int) error) error {
	var g errgroup.Group
	g.SetLimit(creators)
	for i := range n {
		g.Go(func() error {
			err := f(i)
			for try := 0; try < 5 && (apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || apierrors.IsTimeout(err)); try++ {
				time.Sleep(time.Second)
				err = client.IgnoreAlreadyExists(f(i))
			}
			return err
		})
	}
	return g.Wait()
}
