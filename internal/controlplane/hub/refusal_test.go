package hub

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestRefusals lets a member, and a client that pretends to be one, ask in every way that
// is not allowed. None of them reaches a budget.
func TestRefusals(t *testing.T) {
	w, foreign := newWorld(t).start(t), newWorld(t).start(t)
	b, c, other := w.secret(t, "b"), w.secret(t, "c"), foreign.secret(t, "b")
	if err := w.kube.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: MemberPrefix + "c"}}); err != nil {
		t.Fatal(err)
	}
	w.budgets.set("theirs", params(10, "a", "c"))
	p, _ := w.budgets.Budget(budgetID)
	long := p
	long.Window *= 60
	several := p
	several.Others = []limiter.Micros{60 * limiter.Second}
	w.budgets.set("several", several)
	differing := p
	differing.Others = []limiter.Micros{61 * limiter.Second}
	old := ended(t, w, "b")

	for name, test := range map[string]struct {
		secret map[string][]byte
		id     string
		params ledger.Params
		member string
		reason Reason
		cure   string
	}{
		"another hub's certificate and token": {with(other, part(b, AuthorityKey)), budgetID, p, "b", Unauthorized, "copy Secret weir-member-b"},
		"another hub's certificate":           {with(b, part(other, CertificateKey, PrivateKey)), budgetID, p, "b", Unauthorized, "copy Secret weir-member-b"},
		"another hub's token":                 {with(b, part(other, TokenKey)), budgetID, p, "b", Unauthorized, "copy Secret weir-member-b"},
		"another member's token":              {with(b, part(c, TokenKey)), budgetID, p, "b", Unauthorized, "copy Secret weir-member-b"},
		"another member's certificate":        {with(b, part(c, CertificateKey, PrivateKey)), budgetID, p, "b", Unauthorized, "copy Secret weir-member-c"},
		"a token that begins as the good one": {with(b, map[string][]byte{TokenKey: b[TokenKey][:40]}), budgetID, p, "b", Unauthorized, "token"},
		"a command for another member":        {b, budgetID, p, "c", Unauthorized, "--cluster-name=b"},
		"a Secret that was deleted":           {c, budgetID, p, "c", Unauthorized, "copy Secret weir-member-c"},
		"the server's own certificate":        {with(b, serving(t, w)), budgetID, p, "b", Unauthorized, "copy Secret"},
		"an expired certificate":              {with(b, old), budgetID, p, "b", CertificateExpired, "copy Secret weir-member-b"},
		"an authority that is not the hub's":  {with(b, part(other, AuthorityKey)), budgetID, p, "b", Untrusted, "--federation-sans"},
		"an unknown budget":                   {b, "nobody's", p, "b", UnknownBudget, "apply a FederatedBudget"},
		"a budget that does not list it":      {b, "theirs", p, "b", UnknownMember, "spec.members"},
		"another window":                      {b, budgetID, long, "b", Mismatched, "spec.rate.window"},
		"further rates that the hub lacks":    {b, budgetID, several, "b", Mismatched, "additionalRates"},
		"no further rates":                    {b, "several", p, "b", Mismatched, "additionalRates"},
		"other further rates":                 {b, "several", differing, "b", Mismatched, "additionalRates"},
	} {
		t.Run(name, func(t *testing.T) {
			client := w.open(t, test.secret)
			_, err := client.Apply(t.Context(), test.id, test.params, lease(test.member, 1, 5))
			requireRefused(t, err, w.address, test.reason, test.cure)
			if test.reason != Mismatched && name != "a command for another member" {
				_, err = client.Observe(t.Context(), test.id)
				requireRefused(t, err, w.address, test.reason, test.cure)
			}
		})
	}
	if n := w.coordinator.calls.Load(); n != 0 {
		t.Errorf("%d calls reached the budgets", n)
	}
	if _, err := w.open(t, b).Apply(t.Context(), budgetID, p, lease("b", 1, 5)); err != nil {
		t.Errorf("the member itself: %v", err)
	}
}

func requireRefused(t *testing.T, err error, endpoint string, reason Reason, cure string) {
	t.Helper()
	refused := (*RefusedError)(nil)
	if !errors.As(err, &refused) || refused.Reason != reason || refused.Endpoint != endpoint || !strings.Contains(err.Error(), cure) {
		t.Errorf("got %v, want a refusal for %s that says %q", err, reason, cure)
	}
}

// part returns some keys of a Secret.
func part(secret map[string][]byte, keys ...string) map[string][]byte {
	out := map[string][]byte{}
	for _, key := range keys {
		out[key] = secret[key]
	}
	return out
}

// ended returns a certificate of the hub's authority that is not valid any more.
func ended(t *testing.T, w *world, member string) map[string][]byte {
	t.Helper()
	certificate, key, err := w.creds.authority.NewClient(member, -time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{CertificateKey: certificate, PrivateKey: key}
}

// serving returns the server's certificate as if it were a client's.
func serving(t *testing.T, w *world) map[string][]byte {
	t.Helper()
	s := &corev1.Secret{}
	if err := w.kube.Get(t.Context(), secretNamed(w, AuthoritySecret), s); err != nil {
		t.Fatal(err)
	}
	return part(s.Data, CertificateKey, PrivateKey)
}

// TestNoCertificate calls with a good token alone.
func TestNoCertificate(t *testing.T) {
	w := newWorld(t).start(t)
	own, err := newIdentity(w.secret(t, "b"))
	if err != nil {
		t.Fatal(err)
	}
	leaf := own.certificate.Leaf
	own.certificate = tls.Certificate{Leaf: leaf}
	conn, err := dial(w.address, own, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.conn.Close() }()
	p, _ := w.budgets.Budget(budgetID)
	_, err = (&Client{connection: conn}).Apply(t.Context(), budgetID, p, lease("b", 1, 5))
	requireRefused(t, err, w.address, Unauthorized, "certificate required")
}
