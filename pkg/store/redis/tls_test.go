package redis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/redis"
)

func TestEncryptedConnections(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.issue(t, "server", "redis.internal")
	_, port, _ := net.SplitHostPort(redistest.FreeAddr(t))
	redistest.Start(t, "--tls-port", port, "--tls-ca-cert-file", ca.file,
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "yes")
	client, err := tls.LoadX509KeyPair(ca.issue(t, "client", "weir"))
	if err != nil {
		t.Fatal(err)
	}
	right := &tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{client}, ServerName: "redis.internal"}
	everything(t, open(t, redis.Options{Addresses: []string{"127.0.0.1:" + port}, TLS: right}))

	for name, spoil := range map[string]func(*tls.Config){
		"an unknown authority":  func(c *tls.Config) { c.RootCAs = x509.NewCertPool() },
		"another name":          func(c *tls.Config) { c.ServerName = "postgres.internal" },
		"the dialled address":   func(c *tls.Config) { c.ServerName = "" },
		"no client certificate": func(c *tls.Config) { c.Certificates = nil },
	} {
		wrong := right.Clone()
		spoil(wrong)
		s := open(t, redis.Options{Addresses: []string{"127.0.0.1:" + port}, TLS: wrong})
		_, err := s.Apply(t.Context(), counterOf(name), perWindow(1, limiter.Second), lease)
		wantUnavailable(t, err)
	}
}

// An authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a := &authority{key: newKey(t), cert: template, pool: x509.NewCertPool()}
	der := a.sign(t, template, a.key)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a.cert = cert
	a.pool.AddCert(cert)
	a.file = write(t, "CERTIFICATE", der)
	return a
}

// issue returns the files of a certificate for a name and of its key.
func (a *authority) issue(t *testing.T, subject, name string) (cert, key string) {
	t.Helper()
	own := newKey(t)
	der := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: subject}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, own)
	encoded, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "CERTIFICATE", der), write(t, "PRIVATE KEY", encoded)
}

func (a *authority) sign(t *testing.T, template *x509.Certificate, of *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &of.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func write(t *testing.T, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
