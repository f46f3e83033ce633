package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// addHealth makes a replica ready once it has a certificate and its cache holds what its
// components read; with webhooks, once they listen, too. A replica that waits to lead keeps
// the cache warm.
func (p *platform) addHealth(ctx context.Context) error {
	var informers []cache.Informer
	for _, kind := range p.options.watched() {
		informer, err := p.manager.GetCache().GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
		informers = append(informers, informer)
	}
	return errors.Join(
		p.manager.AddHealthzCheck("ping", healthz.Ping),
		p.manager.AddReadyzCheck("certificate", func(*http.Request) error {
			select {
			case <-p.certificates.Ready():
				return nil
			default:
				return errors.New("there is no certificate to serve yet")
			}
		}),
		p.manager.AddReadyzCheck("cache", func(*http.Request) error {
			for _, informer := range informers {
				if !informer.HasSynced() {
					return errors.New("the cache is not synced yet")
				}
			}
			return nil
		}),
	)
}

// watched returns an object of each kind that the components read from the cache. The
// webhooks read no pods but those they are asked about.
func (o *options) watched() []client.Object {
	kinds := []client.Object{&v1alpha1.RateLimitPolicy{}, &v1alpha1.ConcurrencyPool{}, &v1alpha1.FederatedBudget{}}
	if o.runs(webhooksComponent) {
		kinds = append(kinds, &corev1.Namespace{})
	}
	if o.runs(coordinatorComponent) {
		kinds = append(kinds, &corev1.Pod{})
	}
	return kinds
}
