package certs

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

// TestNewClient makes a certificate that proves a client's name and nothing else.
func TestNewClient(t *testing.T) {
	m := New(cluster().Build(), options())
	if _, _, err := m.NewClient("eu-west", time.Hour); err == nil {
		t.Error("there is a certificate before there is an authority")
	}
	mustReconcile(t, m)
	certificate, key, err := m.NewClient("eu-west", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(m.CABundle())
	verify := func(usage x509.ExtKeyUsage, at time.Time) error {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{usage}})
		return err
	}
	if err := verify(x509.ExtKeyUsageClientAuth, time.Now()); err != nil || pair.Leaf.Subject.CommonName != "eu-west" {
		t.Errorf("%v of %s", err, pair.Leaf.Subject)
	}
	if verify(x509.ExtKeyUsageServerAuth, time.Now()) == nil {
		t.Error("a client may serve")
	}
	if verify(x509.ExtKeyUsageClientAuth, time.Now().Add(2*time.Hour)) == nil {
		t.Error("the certificate does not end")
	}
	if pair.Leaf.IsCA {
		t.Error("a client may sign")
	}
}
