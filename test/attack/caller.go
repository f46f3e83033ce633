package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/internal/federationpb"
)

// A caller is a member, or somebody who would like to be one.
type caller struct {
	certificates []tls.Certificate
	token        string
}

// as returns a member with what the hub gave it.
func (w *world) as(ctx context.Context, name string) (caller, error) {
	if err := w.openBudget(ctx); err != nil {
		return caller{}, err
	}
	secret, err := w.memberSecret(ctx, name)
	if err != nil {
		return caller{}, err
	}
	pair, err := tls.X509KeyPair(secret.Data[hub.CertificateKey], secret.Data[hub.PrivateKey])
	return caller{certificates: []tls.Certificate{pair}, token: string(secret.Data[hub.TokenKey])}, err
}

func nobody(ctx context.Context, w *world) (caller, error) {
	return caller{token: "x"}, w.openBudget(ctx)
}

// selfSigned has a certificate of a member's name that nobody signed.
func selfSigned(ctx context.Context, w *world) (caller, error) {
	c, err := w.as(ctx, foe)
	if err != nil {
		return c, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: foe}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	c.certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	return c, err
}

func withToken(token string) func(context.Context, *world) (caller, error) {
	return func(ctx context.Context, w *world) (caller, error) {
		c, err := w.as(ctx, foe)
		c.token = token
		return c, err
	}
}

func othersToken(ctx context.Context, w *world) (caller, error) {
	c, err := w.as(ctx, foe)
	if err != nil {
		return c, err
	}
	other, err := w.as(ctx, ally)
	c.token = other.token
	return c, err
}

// dial connects a caller to the hub, and returns the context of its calls.
func (w *world) dial(ctx context.Context, c caller) (context.Context, federationpb.FederationClient, *grpc.ClientConn, error) {
	secret := &corev1.Secret{}
	if err := w.kube.Get(ctx, client.ObjectKey{Namespace: weirSpace, Name: hub.AuthoritySecret}, secret); err != nil {
		return nil, nil, nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(secret.Data[hub.AuthorityKey])
	config := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, Certificates: c.certificates}
	conn, err := grpc.NewClient("passthrough:///"+w.cluster.Controller.FederationAddress(), grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		return nil, nil, nil, err
	}
	if c.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token)
	}
	return ctx, federationpb.NewFederationClient(conn), conn, nil
}
