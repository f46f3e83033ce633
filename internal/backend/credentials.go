package backend

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/weir-dev/weir/pkg/policy"
)

// credentials are the values of the Secret that a store names.
type credentials struct {
	of     policy.Store
	values map[string][]byte
}

func (s credentials) text(key string) string { return string(s.values[key]) }

// wrong says what is the matter with a value, which it does not show.
func (s credentials) wrong(key, what string) error {
	if s.of.Secret == "" {
		return fmt.Errorf("%s %s; the store names no secret: put it into one and name that in spec.store", key, what)
	}
	return fmt.Errorf("%s of secret %s %s", key, s.of.Secret, what)
}

// login returns the name of a user, which may be empty, and the password.
func (s credentials) login(user, password string) (name, secret string, err error) {
	name, secret = s.text(user), s.text(password)
	if name != "" && secret == "" {
		return "", "", s.wrong(password, fmt.Sprintf("is missing, but there is %s: give any password to a user that needs none", user))
	}
	return name, secret, nil
}

// encryption returns how connections are encrypted, nil when they are not. The server's
// certificate has to be signed by the authority of the Secret, or one of the system
// when there is none. The client shows the certificate of the Secret if there is one.
func (s credentials) encryption() (*tls.Config, error) {
	if !s.of.TLS {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority := s.values[policy.SecretAuthority]; len(authority) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authority) {
			return nil, s.wrong(policy.SecretAuthority, "holds no certificate: write that of the authority as PEM")
		}
	}
	pair, err := s.pair()
	if err != nil {
		return nil, err
	}
	config.Certificates = pair
	return config, nil
}

// pair returns the client's certificate, none when there is none.
func (s credentials) pair() ([]tls.Certificate, error) {
	certificate, key := s.values[policy.SecretCertificate], s.values[policy.SecretPrivateKey]
	switch {
	case len(certificate) == 0 && len(key) == 0:
		return nil, nil
	case len(key) == 0:
		return nil, s.wrong(policy.SecretPrivateKey, "is missing, but there is "+policy.SecretCertificate+": both make the client's certificate")
	case len(certificate) == 0:
		return nil, s.wrong(policy.SecretCertificate, "is missing, but there is "+policy.SecretPrivateKey+": both make the client's certificate")
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, s.wrong(policy.SecretCertificate, fmt.Sprintf("and its %s are not a pair: %v", policy.SecretPrivateKey, err))
	}
	return []tls.Certificate{pair}, nil
}
