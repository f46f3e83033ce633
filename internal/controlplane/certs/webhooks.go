package certs

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// publish puts the authority into every entry of the named webhook configurations
// that has another one.
func (m *Manager) publish(ctx context.Context, caBundle []byte) error {
	var errs []error
	for _, name := range m.options.MutatingWebhooks {
		if err := m.publishMutating(ctx, name, caBundle); err != nil {
			errs = append(errs, fmt.Errorf("put the authority into MutatingWebhookConfiguration %s: %w", name, err))
		}
	}
	for _, name := range m.options.ValidatingWebhooks {
		if err := m.publishValidating(ctx, name, caBundle); err != nil {
			errs = append(errs, fmt.Errorf("put the authority into ValidatingWebhookConfiguration %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func (m *Manager) publishMutating(ctx context.Context, name string, caBundle []byte) error {
	config := &admissionv1.MutatingWebhookConfiguration{}
	return m.update(ctx, name, config, func() (changed bool) {
		for i := range config.Webhooks {
			changed = trust(&config.Webhooks[i].ClientConfig, caBundle) || changed
		}
		return changed
	})
}

func (m *Manager) publishValidating(ctx context.Context, name string, caBundle []byte) error {
	config := &admissionv1.ValidatingWebhookConfiguration{}
	return m.update(ctx, name, config, func() (changed bool) {
		for i := range config.Webhooks {
			changed = trust(&config.Webhooks[i].ClientConfig, caBundle) || changed
		}
		return changed
	})
}

// update reads the named object into config and writes it back if change reports that it
// changed it. It fails where somebody else changed it meanwhile.
func (m *Manager) update(ctx context.Context, name string, config client.Object, change func() bool) error {
	if err := m.client.Get(ctx, types.NamespacedName{Name: name}, config); err != nil {
		return err
	}
	patch := client.MergeFromWithOptions(config.DeepCopyObject().(client.Object), client.MergeFromWithOptimisticLock{})
	if !change() {
		return nil
	}
	return m.client.Patch(ctx, config, patch)
}

// trust sets the authority of one entry and reports whether that changed it.
func trust(config *admissionv1.WebhookClientConfig, caBundle []byte) bool {
	if bytes.Equal(config.CABundle, caBundle) {
		return false
	}
	config.CABundle = caBundle
	return true
}
