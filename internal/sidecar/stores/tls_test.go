package stores

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"testing"
	"time"
)

// identity returns a certificate for localhost that signs itself, and its key, as
// PEM.
func identity(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// TestEncryptionTrustsTheAuthorityOfTheSecret shakes hands with a server whose
// certificate only the secret's authority signed, and which wants one of the client.
func TestEncryptionTrustsTheAuthorityOfTheSecret(t *testing.T) {
	certificate, key := identity(t)
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(certificate)
	for name, tc := range map[string]struct {
		data map[string][]byte
		good bool
	}{
		"with authority and certificate": {map[string][]byte{"ca.crt": certificate, "tls.crt": certificate, "tls.key": key}, true},
		"without the authority":          {map[string][]byte{"tls.crt": certificate, "tls.key": key}, false},
		"without a certificate":          {map[string][]byte{"ca.crt": certificate}, false},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := Secret{Data: tc.data}.encryption(true)
			if err != nil {
				t.Fatal(err)
			}
			config.ServerName = "localhost"
			listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
				Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				served, err := listener.Accept()
				if err != nil {
					return
				}
				defer served.Close()
				_, _ = io.WriteString(served, "welcome") // after the handshake
			}()
			c, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(tls.Client(c, config))
			if good := err == nil && string(said) == "welcome"; good != tc.good {
				t.Errorf("the server said %q, %v", said, err)
			}
		})
	}
	if config, err := (Secret{}).encryption(false); config != nil || err != nil {
		t.Errorf("encrypted although nobody wants it: %v", err)
	}
}
