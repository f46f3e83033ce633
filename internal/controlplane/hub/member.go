package hub

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// How the Secrets of members are found, and their keys.
const (
	MemberPrefix = "weir-member-"    // of their names; the member's follows
	MemberLabel  = "weir.dev/member" // its value is the member's name

	AuthorityKey   = "ca.crt"
	CertificateKey = corev1.TLSCertKey
	PrivateKey     = corev1.TLSPrivateKeyKey
	TokenKey       = "token"
)

const (
	memberLife = 365 * 24 * time.Hour
	tokenBytes = 32
	leastToken = 32 // characters: no hub makes a shorter one
)

// ensure makes the member's Secret what it should be; nil when none was found. Good values
// stay as they are.
func (c *Credentials) ensure(ctx context.Context, member string, secret *corev1.Secret) error {
	key := types.NamespacedName{Namespace: c.config.Namespace, Name: MemberPrefix + member}
	if secret == nil { // it may be without its label
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		if err := c.config.Client.Get(ctx, key, secret); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read %s: %w", key, err)
		}
	}
	data, err := c.renewed(member, secret.Data)
	if err != nil {
		return err
	}
	noted := c.noteNamed(member, secret)
	if !noted && maps.EqualFunc(data, secret.Data, bytes.Equal) && secret.Labels[MemberLabel] == member {
		return nil
	}
	secret.Data = data
	metav1.SetMetaDataLabel(&secret.ObjectMeta, MemberLabel, member)
	if secret.ResourceVersion == "" {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, unusedAnnotation, "true")
		err = c.config.Client.Create(ctx, secret)
	} else {
		err = c.config.Client.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}

// renewed returns what the Secret should hold: all good values that it holds, and new ones
// for the rest. A certificate that is replaced stays good until it ends, and a token is
// replaced only when there is none.
func (c *Credentials) renewed(member string, data map[string][]byte) (map[string][]byte, error) {
	out := maps.Clone(data)
	if out == nil {
		out = map[string][]byte{}
	}
	authority := c.authority.CABundle()
	if err := usable(member, authority, data, c.config.Clock.Now()); err != nil {
		if out[CertificateKey], out[PrivateKey], err = c.authority.NewClient(member, memberLife); err != nil {
			return nil, fmt.Errorf("make a certificate: %w", err)
		}
	}
	out[AuthorityKey] = authority
	if len(data[TokenKey]) < leastToken {
		token := make([]byte, tokenBytes)
		_, _ = rand.Read(token) // never fails
		out[TokenKey] = []byte(base64.RawURLEncoding.EncodeToString(token))
	}
	return out, nil
}

// usable says why the certificate of the Secret has to be replaced at now.
func usable(member string, authority []byte, data map[string][]byte, now time.Time) error {
	pair, err := tls.X509KeyPair(data[CertificateKey], data[PrivateKey])
	if err != nil {
		return err
	}
	if pair.Leaf.Subject.CommonName != member {
		return errors.New("the certificate is another member's")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return err
	}
	if life := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore); now.Sub(pair.Leaf.NotBefore) >= life/3*2 {
		return errors.New("two thirds of the certificate's life are over")
	}
	return nil
}

// token returns the member's present token, "" for none.
func (c *Credentials) token(ctx context.Context, member string) (string, error) {
	secret := &corev1.Secret{}
	err := c.config.Client.Get(ctx, types.NamespacedName{Namespace: c.config.Namespace, Name: MemberPrefix + member}, secret)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the member's Secret: %w", err)
	}
	return string(secret.Data[TokenKey]), nil
}
