package hub

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/weir-dev/weir/internal/federationpb"
)

// renewable returns a member's Secret with a certificate that is to be renewed now.
func (w *world) renewable(t *testing.T, secret map[string][]byte, member string) map[string][]byte {
	t.Helper()
	certificate, key, err := w.creds.authority.NewClient(member, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return with(secret, map[string][]byte{CertificateKey: certificate, PrivateKey: key})
}

// TestAMemberRenewsItsCertificate over the connection that it has; the old one and the
// new one are both good, and the key never travels. The member's clock is behind.
func TestAMemberRenewsItsCertificate(t *testing.T) {
	w := newWorld(t).start(t)
	w.clock.Step(2 * time.Hour)
	old := w.renewable(t, w.secret(t, "b"), "b")
	b := w.open(t, old)
	from, until := b.Renewable()
	if !from.Before(w.clock.Now()) || !until.After(w.clock.Now()) {
		t.Errorf("to be renewed from %v to %v, want now: %v", from, until, w.clock.Now())
	}
	next, err := b.Renew(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(next.Before, old[CertificateKey]) || len(next.Data) != 3 || next.Data[TokenKey] != nil {
		t.Errorf("the renewal is of %q and changes %d values", next.Before, len(next.Data))
	}
	p, _ := w.budgets.Budget(budgetID)
	renewed := w.open(t, with(old, next.Data))
	if _, ends := renewed.Renewable(); renewed.Member() != "b" || !ends.Equal(w.clock.Now().Add(memberLife).Truncate(time.Second)) {
		t.Errorf("the new certificate is of %q and ends at %v", renewed.Member(), ends)
	}
	for name, c := range map[string]*Client{"old": b, "new": renewed} {
		if _, err := c.Apply(t.Context(), budgetID, p, lease("b", 1, 5)); err != nil {
			t.Errorf("the %s certificate: %v", name, err)
		}
	}
	if leaf := leafOf(t, next.Data); w.clock.Now().Sub(leaf.NotBefore) < time.Minute {
		t.Errorf("it is good from %v on: a clock that is behind does not accept it", leaf.NotBefore)
	}
}

func leafOf(t *testing.T, data map[string][]byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data[CertificateKey])
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

// TestACertificateIsForWhoAsks, whatever name the request bears.
func TestACertificateIsForWhoAsks(t *testing.T) {
	w := newWorld(t).start(t)
	b := w.open(t, w.secret(t, "b"))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "c"}, DNSNames: []string{"c", "127.0.0.1"},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := b.calls.Renew(t.Context(), &federationpb.RenewRequest{Csr: csr})
	if err != nil {
		t.Fatal(err)
	}
	leaf := leafOf(t, map[string][]byte{CertificateKey: answer.GetCertificate()})
	if leaf.Subject.CommonName != "b" || len(leaf.DNSNames) != 0 || leaf.IsCA || len(leaf.ExtKeyUsage) != 1 || leaf.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth {
		t.Errorf("a certificate of %s for %v, authority %v, usage %v", leaf.Subject, leaf.DNSNames, leaf.IsCA, leaf.ExtKeyUsage)
	}
	if !key.PublicKey.Equal(leaf.PublicKey) {
		t.Error("it is for another key")
	}
}

// TestWhoIsNoMemberRenewsNothing lets others ask, and members that may not.
func TestWhoIsNoMemberRenewsNothing(t *testing.T) {
	w, foreign := newWorld(t).start(t), newWorld(t).start(t)
	b, c, other := w.secret(t, "b"), w.secret(t, "c"), foreign.secret(t, "b")
	if err := w.kube.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: MemberPrefix + "c"}}); err != nil {
		t.Fatal(err)
	}
	old := ended(t, w, "b")
	w.budgets.set(budgetID, params(100, "a", "c"))
	for name, test := range map[string]struct {
		secret map[string][]byte
		reason Reason
		cure   string
	}{
		"a member that no budget lists": {b, UnknownMember, "spec.members"},
		"a Secret that was deleted":     {c, Unauthorized, "copy Secret weir-member-c"},
		"another member's token":        {with(b, part(c, TokenKey)), Unauthorized, "copy Secret weir-member-b"},
		"another hub's member":          {with(other, part(b, AuthorityKey)), Unauthorized, "copy Secret weir-member-b"},
		"an ended certificate":          {with(b, old), CertificateExpired, "copy Secret weir-member-b"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.open(t, test.secret).Renew(t.Context())
			requireRefused(t, err, w.address, test.reason, test.cure)
		})
	}
}

func TestRequestsThatNoMemberMakes(t *testing.T) {
	mine, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, mine)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := requestedKey(good); err != nil {
		t.Errorf("a good request: %v", err)
	}
	large, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string][]byte{"nothing": nil, "text": []byte("x"), "half": good[:len(good)/2]}
	for name, key := range map[string]any{"another curve": large, "another kind": edwards} {
		if requests[name], err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key); err != nil {
			t.Fatal(err)
		}
	}
	unsigned := bytes.Clone(good)
	unsigned[len(unsigned)-1] ^= 1
	requests["a key that the sender does not have"] = unsigned
	for name, csr := range requests {
		if _, err := requestedKey(csr); err == nil {
			t.Errorf("%s: taken for a request", name)
		}
	}
}

// TestKeep writes a renewal where it belongs, and nowhere else.
func TestKeep(t *testing.T) {
	w := newWorld(t)
	config, err := apiServer()
	if err != nil {
		t.Fatal(err)
	}
	watching, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	forbidden := interceptor.NewClient(watching, interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			return apierrors.NewForbidden(corev1.Resource("secrets"), "x", nil)
		},
	})
	renewal := Renewal{Before: []byte("old"), Data: map[string][]byte{AuthorityKey: []byte("ca"), CertificateKey: []byte("new"), PrivateKey: []byte("key")}}
	for name, test := range map[string]struct {
		secret corev1.Secret
		client client.Client
		kept   bool
		fails  string
	}{
		"its own":            {corev1.Secret{}, w.kube, true, ""},
		"replaced meanwhile": {corev1.Secret{Data: map[string][]byte{CertificateKey: []byte("by hand")}}, w.kube, false, ""},
		"immutable":          {corev1.Secret{Immutable: new(true)}, w.kube, false, "immutable"},
		"managed by a tool":  {corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{managedLabel: "Helm"}}}, w.kube, false, "managed by Helm"},
		"owned by an object": {corev1.Secret{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ExternalSecret", Name: "hub", UID: "1", Controller: new(true)},
		}}}, w.kube, false, "managed by ExternalSecret hub"},
		"not its to write": {corev1.Secret{}, forbidden, false, "kubectl create rolebinding weir-hub-credentials --namespace " + w.namespace},
	} {
		t.Run(name, func(t *testing.T) {
			secret := test.secret
			secret.Namespace, secret.GenerateName = w.namespace, "hub-"
			if secret.Data == nil {
				secret.Data = map[string][]byte{CertificateKey: []byte("old"), TokenKey: []byte("token")}
			}
			before := secret.Data
			if err := w.kube.Create(t.Context(), &secret); err != nil {
				t.Fatal(err)
			}
			err := Keep(t.Context(), test.client, w.namespace+"/"+secret.Name, renewal)
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("Keep = %v, want %q", err, test.fails)
			}
			if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(&secret), &secret); err != nil {
				t.Fatal(err)
			}
			want := before
			if test.kept {
				want = with(before, renewal.Data)
			}
			for key := range with(want, secret.Data) {
				if !bytes.Equal(want[key], secret.Data[key]) {
					t.Errorf("%s is %q, want %q", key, secret.Data[key], want[key])
				}
			}
		})
	}
}
