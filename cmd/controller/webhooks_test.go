package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
)

// A mux is a server of webhooks that only routes.
type mux struct {
	ctrlwebhook.Server
	http.ServeMux
}

func (m *mux) Register(path string, hook http.Handler) { m.Handle(path, hook) }

// newAuthority returns an authority whose certificate is a client's, too.
func newAuthority(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "api-server"}, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{authority.Raw}, PrivateKey: key, Leaf: authority}
}

func TestWebhooksAnswerTheirAuthorityAlone(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	pem, err := cert.EncodeCertificates(ours.Leaf)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pem, 0o600); err != nil {
		t.Fatal(err)
	}
	p := withAll(t)
	if p.clientAuthorities, err = readAuthorities(file); err != nil {
		t.Fatal(err)
	}

	read := 0
	hooks := &mux{}
	certified{hooks}.Register("/", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { read++ }))
	server := httptest.NewUnstartedServer(hooks)
	server.TLS = &tls.Config{}
	p.secure(server.TLS)
	server.TLS.GetCertificate = nil // httptest has one
	server.StartTLS()
	defer server.Close()

	for name, tc := range map[string]struct {
		certificates []tls.Certificate
		want         int // 0: none, the handshake fails
		read         int
	}{
		"the authority's":   {[]tls.Certificate{ours}, http.StatusOK, 1},
		"none":              {nil, http.StatusUnauthorized, 0},
		"another authority": {[]tls.Certificate{others}, 0, 0},
	} {
		read = 0
		roots := x509.NewCertPool()
		roots.AddCert(server.Certificate())
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
			RootCAs: roots, ServerName: "example.com",
			// Also where the server did not ask for one of this authority.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if len(tc.certificates) == 0 {
					return &tls.Certificate{}, nil
				}
				return &tc.certificates[0], nil
			},
		}}}
		got := 0
		if answer, err := client.Post(server.URL, "application/json", strings.NewReader("{}")); err == nil {
			got = answer.StatusCode
			_ = answer.Body.Close()
		}
		client.CloseIdleConnections()
		if got != tc.want || read != tc.read {
			t.Errorf("a caller with the certificate of %s: answer %d, read %d times; want %d, %d", name, got, read, tc.want, tc.read)
		}
	}
}

func TestAnAuthorityThatCannotBeReadIsAnError(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(empty, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{empty: "has no certificate in PEM", filepath.Join(t.TempDir(), "gone"): "no such file"} {
		if _, err := readAuthorities(file); err == nil || !strings.Contains(err.Error(), "--webhook-client-ca") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one of the flag with %q", err, want)
		}
	}
}
