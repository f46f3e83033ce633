package hub

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/internal/federationpb"
)

// Renew implements federationpb.FederationServer. Only the key in the request counts: the
// name is the one that the member has proved.
func (s *service) Renew(ctx context.Context, in *federationpb.RenewRequest) (*federationpb.RenewResponse, error) {
	member := memberOf(ctx)
	if !slices.Contains(s.Budgets.Members(), member) {
		return nil, refuse(codes.PermissionDenied, federationpb.Refusal_REASON_UNKNOWN_MEMBER,
			"no budget lists member %q: add it to spec.members of the hub's FederatedBudget", member)
	}
	key, err := requestedKey(in.GetCsr())
	if err != nil {
		return nil, refuse(codes.InvalidArgument, federationpb.Refusal_REASON_INVALID, "the request for a certificate is not one that a member sends: %v", err)
	}
	certificate, err := s.Credentials.authority.SignClient(member, key, memberLife)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &federationpb.RenewResponse{Certificate: certificate, Authority: s.Credentials.authority.CABundle()}, nil
}

// requestedKey returns the key of a request whose sender has it.
func requestedKey(csr []byte) (*ecdsa.PublicKey, error) {
	request, err := x509.ParseCertificateRequest(csr)
	if err != nil {
		return nil, err
	}
	if err := request.CheckSignature(); err != nil {
		return nil, err
	}
	key, ok := request.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("a key of %s, want ECDSA over P-256", request.PublicKeyAlgorithm)
	}
	return key, nil
}

// A Renewal is a certificate in the place of another.
type Renewal struct {
	// Before is the certificate that is replaced, as the Secret has it.
	Before []byte
	// Data are the values of the Secret that change.
	Data map[string][]byte
}

// Renewable returns from when on a certificate should be renewed, two thirds of its
// life, and when it ends.
func (c *Client) Renewable() (from, until time.Time) {
	leaf := c.certificate.Leaf
	return leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 3 * 2), leaf.NotAfter
}

// Renew asks the hub for another certificate, for a key that only this process knows.
// The connection goes on with the one that it has. The error is that of Apply.
func (c *Client) Renew(ctx context.Context) (Renewal, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Renewal{}, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return Renewal{}, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Renewal{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := c.calls.Renew(ctx, &federationpb.RenewRequest{Csr: csr})
	if err != nil {
		return Renewal{}, c.typed(err)
	}
	data := map[string][]byte{
		AuthorityKey: answer.GetAuthority(), CertificateKey: answer.GetCertificate(),
		PrivateKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	}
	if err := c.improves(data); err != nil {
		return Renewal{}, c.misunderstood(err)
	}
	return Renewal{Before: c.pem, Data: data}, nil
}

// improves says why data are not credentials of the same member for longer.
func (c *connection) improves(data map[string][]byte) error {
	next, err := newIdentity(map[string][]byte{
		AuthorityKey: data[AuthorityKey], CertificateKey: data[CertificateKey], PrivateKey: data[PrivateKey],
		TokenKey: []byte(c.token),
	})
	if err != nil {
		return err
	}
	leaf := next.certificate.Leaf
	if _, err := leaf.Verify(x509.VerifyOptions{
		Roots: next.roots, CurrentTime: leaf.NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return err
	}
	switch {
	case next.member() != c.member():
		return fmt.Errorf("a certificate of member %q", next.member())
	case !leaf.NotAfter.After(c.certificate.Leaf.NotAfter):
		return errors.New("a certificate that ends no later")
	}
	return nil
}

// managedLabel names the tool that writes an object, by Kubernetes' recommendation.
const managedLabel = "app.kubernetes.io/managed-by"

// Keep writes a renewal into the member's Secret, "namespace/name". It leaves alone one
// that holds another certificate by now, which somebody else renewed, and one that is not
// its to write: the error then says whose it is, and the cure.
func Keep(ctx context.Context, c client.Client, secret string, r Renewal) error {
	namespace, name, _ := strings.Cut(secret, "/")
	key := types.NamespacedName{Namespace: namespace, Name: name}
	var found corev1.Secret
	if err := c.Get(ctx, key, &found); err != nil {
		return fmt.Errorf("read secret %s: %w", key, err)
	}
	if !bytes.Equal(found.Data[CertificateKey], r.Before) {
		return nil
	}
	if by := managedBy(&found); by != "" {
		return fmt.Errorf("secret %s is %s, and the controller does not write it", key, by)
	}
	maps.Copy(found.Data, r.Data)
	err := c.Update(ctx, &found)
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the controller may not update secret %s; allow it: kubectl create rolebinding weir-hub-credentials "+
			"--namespace %s --clusterrole weir-hub-credentials --serviceaccount weir-system:weir-controller "+
			"(the role is for a secret called weir-hub)", key, key.Namespace)
	case err != nil:
		return fmt.Errorf("write secret %s: %w", key, err)
	}
	return nil
}

// managedBy says why the Secret is not the controller's to write; "" when it is.
func managedBy(s *corev1.Secret) string {
	if s.Immutable != nil && *s.Immutable {
		return "immutable"
	}
	if tool := s.Labels[managedLabel]; tool != "" {
		return "managed by " + tool
	}
	if owner := metav1.GetControllerOf(s); owner != nil {
		return "managed by " + owner.Kind + " " + owner.Name
	}
	return ""
}
