package certs

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	servingLife   = 30 * 24 * time.Hour

	// backdate lets peers whose clocks are behind ours accept a new certificate.
	backdate = time.Hour
)

// A pair is a certificate and its key.
type pair struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// A bundle is what the Secret holds. Each part is nil when it is missing or
// cannot be used.
type bundle struct {
	authority, serving *pair
}

// renewed returns the bundle that should be in force at now: stored as far as it
// is good, what memory has for the rest, and new certificates for what is due.
// The result shares the pairs that are kept.
func renewed(stored, memory bundle, names []string, now time.Time) (bundle, error) {
	authority := cmp.Or(stored.authority, memory.authority)
	if !authority.valid(now) && memory.authority.valid(now) {
		authority = memory.authority
	}
	authority, err := renewedAuthority(authority, now)
	if err != nil {
		return bundle{}, fmt.Errorf("renew the authority: %w", err)
	}
	if stored.serving.serves(names, authority, now) && !stored.serving.due(now) {
		return bundle{authority: authority, serving: stored.serving}, nil
	}
	serving, err := newServing(authority, names, now)
	if err != nil {
		return bundle{}, fmt.Errorf("renew the serving certificate: %w", err)
	}
	return bundle{authority: authority, serving: serving}, nil
}

func (b bundle) equal(c bundle) bool {
	return b.authority.equal(c.authority) && b.serving.equal(c.serving)
}

// renewedAuthority keeps the authority, or gives it a new certificate for the same key
// when that is due. A client that trusts the old certificate then trusts what the new
// one signs, for as long as the old one is valid.
func renewedAuthority(p *pair, now time.Time) (*pair, error) {
	if p.valid(now) && !p.due(now) {
		return p, nil
	}
	key, err := keyOf(p)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "weir"},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	return sign(template, key, &pair{certificate: template, key: key})
}

func keyOf(p *pair) (crypto.Signer, error) {
	if p != nil {
		return p.key, nil
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func newServing(authority *pair, names []string, now time.Time) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "weir-controller"},
		NotBefore:   now.Add(-backdate),
		NotAfter:    now.Add(servingLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return sign(template, key, authority)
}

func sign(template *x509.Certificate, key crypto.Signer, by *pair) (*pair, error) {
	certificate, err := certify(template, key.Public(), by)
	if err != nil {
		return nil, err
	}
	return &pair{certificate: certificate, key: key}, nil
}

func certify(template *x509.Certificate, key crypto.PublicKey, by *pair) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key, by.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// valid reports whether the certificate is there and in force at now.
func (p *pair) valid(now time.Time) bool {
	return p != nil && !now.Before(p.certificate.NotBefore) && now.Before(p.certificate.NotAfter)
}

// due reports whether two thirds of the certificate's life are over.
func (p *pair) due(now time.Time) bool {
	life := p.certificate.NotAfter.Sub(p.certificate.NotBefore)
	return now.Sub(p.certificate.NotBefore) >= life/3*2
}

// serves reports whether a client that trusts the authority accepts the
// certificate for every one of the names at now.
func (p *pair) serves(names []string, authority *pair, now time.Time) bool {
	return p.valid(now) &&
		p.certificate.CheckSignatureFrom(authority.certificate) == nil &&
		!slices.ContainsFunc(names, func(name string) bool { return p.certificate.VerifyHostname(name) != nil })
}

func (p *pair) equal(q *pair) bool {
	if p == nil || q == nil {
		return p == q
	}
	return bytes.Equal(p.certificate.Raw, q.certificate.Raw)
}

// encode returns the certificate and the key as PEM.
func (p *pair) encode() (certificate, key []byte, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(p.key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.certificate.Raw}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// decode reads what encode wrote; it refuses a key that is not the certificate's.
func decode(certificate, key []byte) (*pair, error) {
	parsed, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	signer, ok := parsed.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key cannot sign")
	}
	return &pair{certificate: parsed.Leaf, key: signer}, nil
}

func (p *pair) tls() *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{p.certificate.Raw}, PrivateKey: p.key, Leaf: p.certificate}
}
