package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"time"
)

// NewClient returns a new certificate and its key as PEM, by which a client proves for
// that long, to servers that trust the authority, that it is called name. It fails before the
// Manager is ready.
func (m *Manager) NewClient(name string, life time.Duration) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if certificate, err = m.SignClient(name, private.Public(), life); err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// SignClient returns a new certificate as NewClient does, for a key that only the client
// knows. The caller has seen that the client has it.
func (m *Manager) SignClient(name string, key crypto.PublicKey, life time.Duration) (certificate []byte, err error) {
	s := m.current.Load()
	if s == nil {
		return nil, errNotReady
	}
	now := m.options.Clock.Now()
	signed, err := certify(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		NotBefore:   now.Add(-backdate),
		NotAfter:    now.Add(life),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, key, s.bundle.authority)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed.Raw}), nil
}
