package hub

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// An identity is what a member authenticates with, and the authorities that it trusts.
type identity struct {
	certificate tls.Certificate
	pem         []byte // of the certificate
	roots       *x509.CertPool
	token       token
	digest      string // of all that
}

// newIdentity reads the data of the Secret that the hub made. The error shows none of it.
func newIdentity(secret map[string][]byte) (identity, error) {
	var i identity
	i.roots = x509.NewCertPool()
	if !i.roots.AppendCertsFromPEM(secret[AuthorityKey]) {
		return i, wrong(AuthorityKey, "holds no certificate in PEM")
	}
	var err error
	if i.certificate, err = tls.X509KeyPair(secret[CertificateKey], secret[PrivateKey]); err != nil {
		return i, wrong(CertificateKey+" and "+PrivateKey, "are not a certificate and its key in PEM")
	}
	i.pem = secret[CertificateKey]
	i.token = token(strings.TrimSpace(string(secret[TokenKey])))
	if i.token == "" || strings.ContainsFunc(string(i.token), func(r rune) bool { return r <= ' ' || r > '~' }) {
		return i, wrong(TokenKey, "is not a token")
	}
	digest := sha256.New()
	for _, key := range []string{AuthorityKey, CertificateKey, PrivateKey, TokenKey} {
		_, _ = fmt.Fprintf(digest, "%d:%s", len(secret[key]), secret[key]) // a hash never fails
	}
	i.digest = hex.EncodeToString(digest.Sum(nil))
	return i, nil
}

func wrong(keys, what string) error {
	return fmt.Errorf("%s of the hub's secret %s: copy Secret %s<member> from the namespace of the hub's controller, and name the copy in spec.hub.secretRef",
		keys, what, MemberPrefix)
}

func (i identity) member() string { return i.certificate.Leaf.Subject.CommonName }

func (i identity) tls() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: i.roots, Certificates: []tls.Certificate{i.certificate}}
}

// A token authenticates each call.
type token string

// GetRequestMetadata returns the bearer token.
func (t token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(t)}, nil
}

// RequireTransportSecurity keeps the token off connections without TLS.
func (token) RequireTransportSecurity() bool { return true }

func checkEndpoint(endpoint string) error {
	host, port, err := net.SplitHostPort(endpoint)
	if n, convErr := strconv.ParseUint(port, 10, 16); err != nil || host == "" || convErr != nil || n == 0 {
		return fmt.Errorf("endpoint %q is not host:port: write spec.hub.endpoint like weir-hub.example.com:15040", endpoint)
	}
	return nil
}
