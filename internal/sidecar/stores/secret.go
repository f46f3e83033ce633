package stores

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/weir-dev/weir/pkg/policy"
)

// A Secret holds the credentials that a store names. It is kept in memory only,
// and prints without its values.
type Secret struct {
	Name    string // as policy.Store.Secret
	Version string // changes with the values
	Data    map[string][]byte
}

// Format implements fmt.Formatter: whatever the verb, values are not shown.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "secret %s", s.Name) }

// MarshalJSON shows the name alone.
func (s Secret) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", s.Name), nil }

// text returns a value of the secret, empty when it has none.
func (s Secret) text(name string) string { return string(s.Data[name]) }

// encryption returns how connections are encrypted, nil when they are not: the
// server's certificate has to be signed by ca.crt, or an authority of the system
// without it, and the client shows tls.crt if there is one.
func (s Secret) encryption(wanted bool) (*tls.Config, error) {
	if !wanted {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority := s.Data["ca.crt"]; len(authority) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authority) {
			return nil, fmt.Errorf("ca.crt of secret %s holds no certificate: write the authority's as PEM", s.Name)
		}
	}
	if certificate := s.Data["tls.crt"]; len(certificate) > 0 {
		pair, err := tls.X509KeyPair(certificate, s.Data["tls.key"])
		if err != nil {
			return nil, fmt.Errorf("tls.crt and tls.key of secret %s are no pair: %w", s.Name, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// nameOf returns the store as users are told of it.
func nameOf(s policy.Store) string {
	switch s.Type {
	case policy.RedisStore:
		return "redis at " + s.Address
	case policy.PostgresStore:
		return "postgres at " + s.Address
	default:
		return "controller"
	}
}
