package postgres_test

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
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/postgres"
)

// TestConnectionsAreEncrypted has a server that takes one user by its client
// certificate only.
func TestConnectionsAreEncrypted(t *testing.T) {
	t.Parallel()
	server, ours, others := postgrestest.Start(t), newAuthority(t), newAuthority(t)
	cert, key := ours.issue(t, "the server")
	server.WriteFile("server.crt", cert)
	server.WriteFile("server.key", key)
	server.WriteFile("ca.crt", ours.pem)
	server.WriteFile("pg_hba.conf", []byte("hostssl all shop all cert\nhost all "+postgrestest.User+" all trust\n"))
	server.Do("CREATE ROLE shop LOGIN SUPERUSER")
	server.Do("ALTER SYSTEM SET ssl_ca_file = 'ca.crt'")
	server.Do("ALTER SYSTEM SET ssl = on")
	server.Restart()

	with := func(a authority, certificates ...tls.Certificate) *tls.Config {
		return &tls.Config{RootCAs: a.pool, Certificates: certificates}
	}
	shop, err := tls.X509KeyPair(ours.issue(t, "shop"))
	if err != nil {
		t.Fatal(err)
	}
	o := postgres.Options{Address: server.Addr, Database: postgrestest.Database, User: "shop", Password: password}
	o.TLS = with(ours, shop)
	s := dialAs(t, o)
	for range 2 {
		apply(t, s, counterOf("a"), perWindow(1, limiter.Second), lease)
	}
	for name, c := range map[string]*tls.Config{
		"a server of another authority": with(others, shop),
		"no certificate":                with(ours),
		"no encryption":                 nil,
	} {
		o.TLS = c
		_, err := dialAs(t, o).Apply(t.Context(), counterOf("a"), perWindow(1, limiter.Second), lease)
		t.Log(name, err)
		wantUnavailable(t, err, server.Addr)
	}
}

// An authority issues certificates for 127.0.0.1.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	pem  []byte
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := certificate("an authority")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := authority{cert: cert, key: key, pool: x509.NewCertPool(), pem: encodePEM("CERTIFICATE", der)}
	a.pool.AddCert(cert)
	return a
}

// issue returns a certificate and its key.
func (a authority) issue(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate(name), a.cert, private.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return encodePEM("CERTIFICATE", der), encodePEM("EC PRIVATE KEY", secret)
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
