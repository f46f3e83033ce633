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
	if err := m.client.Get(ctx, types.NamespacedName{Name: name}, config); err != nil {
		return err
	}
	patch := client.MergeFromWithOptions(config.DeepCopy(), client.MergeFromWithOptimisticLock{})
	changed := false
	for i := range config.Webhooks {
		changed = trust(&config.Webhooks[i].ClientConfig, caBundle) || changed
	}
	if !changed {
		return nil
	}
	return m.client.Patch(ctx, config, patch)
}

func (m *Manager) publishValidating(ctx context.Context, name string, caBundle []byte) error {
	config := &admissionv1.ValidatingWebhookConfiguration{}
	if err := m.client.Get(ctx, types.NamespacedName{Name: name}, config); err != nil {
		return err
	}
	patch := client.MergeFromWithOptions(config.DeepCopy(), client.MergeFromWithOptimisticLock{})
	changed := false
	for i := range config.Webhooks {
		changed = trust(&config.Webhooks[i].ClientConfig, caBundle) || changed
	}
	if !changed {
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
