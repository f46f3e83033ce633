package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"time"
)

// NewClient returns a new certificate and its key as PEM, by which a client proves for
// so long, to whoever trusts the authority, that it is called name. It fails before the
// Manager is ready.
func (m *Manager) NewClient(name string, life time.Duration) (certificate, key []byte, err error) {
	s := m.current.Load()
	if s == nil {
		return nil, nil, errNotReady
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := m.options.Clock.Now()
	p, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		NotBefore:   now.Add(-backdate),
		NotAfter:    now.Add(life),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, private, s.bundle.authority)
	if err != nil {
		return nil, nil, err
	}
	return p.encode()
}
