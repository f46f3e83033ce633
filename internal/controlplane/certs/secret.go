package certs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The keys of the Secret.
const (
	authorityCertificate = "ca.crt"
	authorityKey         = "ca.key"
	servingCertificate   = corev1.TLSCertKey
	servingKey           = corev1.TLSPrivateKeyKey
)

// attempts bounds how often one reconciliation starts over because another replica
// wrote first. The Secret that it wrote is good, so the second attempt ends with it.
// More attempts are for a Secret that is damaged at that moment.
const attempts = 5

// sync brings the Secret to what it should hold at present and returns that.
func (m *Manager) sync(ctx context.Context) (bundle, error) {
	var conflict error
	for range attempts {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.options.Secret.Namespace, Name: m.options.Secret.Name}}
		if err := m.client.Get(ctx, m.options.Secret, secret); err != nil && !apierrors.IsNotFound(err) {
			return bundle{}, fmt.Errorf("read Secret %s: %w", m.options.Secret, err)
		}
		stored := bundleOf(secret.Data)
		next, err := renewed(stored, m.memory(), m.options.Names, m.options.Clock.Now())
		if err != nil {
			return bundle{}, err
		}
		if next.equal(stored) {
			return next, nil
		}
		err = m.write(ctx, secret, next)
		switch {
		case err == nil:
			return next, nil
		case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err):
			return bundle{}, fmt.Errorf("write Secret %s: %w", m.options.Secret, err)
		}
		conflict = err
	}
	return bundle{}, fmt.Errorf("write Secret %s: gave up after %d attempts: %w", m.options.Secret, attempts, conflict)
}

// follow returns what the Secret holds, if that can be served at present.
func (m *Manager) follow(ctx context.Context) (bundle, error) {
	var secret corev1.Secret
	if err := m.client.Get(ctx, m.options.Secret, &secret); err != nil {
		return bundle{}, fmt.Errorf("read Secret %s, which the controller makes: %w", m.options.Secret, err)
	}
	b, now := bundleOf(secret.Data), m.options.Clock.Now()
	if !b.authority.valid(now) || !b.serving.serves(m.options.Names, b.authority, now) {
		return bundle{}, fmt.Errorf("no certificate in Secret %s serves %s at present: the controller has to renew it", m.options.Secret, strings.Join(m.options.Names, ", "))
	}
	return b, nil
}

// write creates the Secret, or updates it if it is still the one that was read.
func (m *Manager) write(ctx context.Context, secret *corev1.Secret, b bundle) error {
	authority, authorityPrivate, err := b.authority.encode()
	serving, servingPrivate, servingErr := b.serving.encode()
	if err := errors.Join(err, servingErr); err != nil {
		return err
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[authorityCertificate], secret.Data[authorityKey] = authority, authorityPrivate
	secret.Data[servingCertificate], secret.Data[servingKey] = serving, servingPrivate
	if secret.ResourceVersion == "" {
		return m.client.Create(ctx, secret)
	}
	return m.client.Update(ctx, secret)
}

// bundleOf reads the Secret's data, leaving out what is missing or damaged.
func bundleOf(data map[string][]byte) bundle {
	var b bundle
	if p, err := decode(data[authorityCertificate], data[authorityKey]); err == nil && p.certificate.IsCA {
		b.authority = p
	}
	if p, err := decode(data[servingCertificate], data[servingKey]); err == nil {
		b.serving = p
	}
	return b
}
