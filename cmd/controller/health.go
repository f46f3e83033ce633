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

// addHealth makes a replica ready once it can answer admission requests: it has a
// certificate, its webhooks listen, and its cache holds what they read. A replica
// that waits to lead keeps the cache warm, too.
func (p *platform) addHealth(ctx context.Context) error {
	var informers []cache.Informer
	for _, kind := range []client.Object{&corev1.Namespace{}, &corev1.Pod{}, &v1alpha1.RateLimitPolicy{}, &v1alpha1.ConcurrencyPool{}, &v1alpha1.FederatedBudget{}} {
		informer, err := p.manager.GetCache().GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
		informers = append(informers, informer)
	}
	return errors.Join(
		p.manager.AddHealthzCheck("ping", healthz.Ping),
		p.manager.AddReadyzCheck("webhooks", p.manager.GetWebhookServer().StartedChecker()),
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
