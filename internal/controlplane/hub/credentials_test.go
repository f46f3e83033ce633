package hub

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
)

// reconcile brings the Secrets up to date. Start may do so at the same moment, and write
// first.
func (w *world) reconcile(t *testing.T) {
	t.Helper()
	eventually(t, "the Secrets are up to date", func() bool {
		return w.creds.reconcile(t.Context(), w.creds.members()) == nil
	})
}

func (w *world) update(t *testing.T, member string, change func(map[string][]byte)) {
	t.Helper()
	s := &corev1.Secret{}
	if err := w.kube.Get(t.Context(), secretNamed(w, MemberPrefix+member), s); err != nil {
		t.Fatal(err)
	}
	change(s.Data)
	if err := w.kube.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// TestSecretsOfMembers lets time pass and damages happen: what is good stays, and what
// is not is made again.
func TestSecretsOfMembers(t *testing.T) {
	w := newWorld(t).start(t)
	if err := w.kube.Get(t.Context(), secretNamed(w, MemberPrefix+"a"), &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("the hub has a Secret for itself: %v", err)
	}
	made := w.secret(t, "b")
	w.reconcile(t)
	requireKept(t, "at once", made, w.secret(t, "b"), AuthorityKey, CertificateKey, PrivateKey, TokenKey)
	if err := usable("b", w.creds.authority.CABundle(), made, w.clock.Now().Add(-memberLife)); err == nil {
		t.Error("a certificate that is not valid yet is kept")
	}

	w.clock.SetTime(w.clock.Now().Add(memberLife/3*2 - 2*time.Hour))
	w.reconcile(t)
	requireKept(t, "before two thirds of its life", made, w.secret(t, "b"), CertificateKey, PrivateKey, TokenKey)

	w.clock.SetTime(w.clock.Now().Add(3 * time.Hour))
	w.reconcile(t)
	renewed := w.secret(t, "b")
	requireKept(t, "after two thirds of its life", made, renewed, TokenKey)
	if bytes.Equal(made[CertificateKey], renewed[CertificateKey]) {
		t.Error("the certificate is not renewed")
	}
	for name, secret := range map[string]map[string][]byte{"old": made, "new": renewed} {
		own, err := newIdentity(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := knock(w, own); err != nil {
			t.Errorf("the %s certificate: %v", name, err)
		}
	}

	for name, test := range map[string]struct {
		damage func(map[string][]byte)
		kept   []string
	}{
		"no token":            {func(d map[string][]byte) { delete(d, TokenKey) }, []string{AuthorityKey, CertificateKey, PrivateKey}},
		"a short token":       {func(d map[string][]byte) { d[TokenKey] = []byte("guess") }, []string{AuthorityKey, CertificateKey, PrivateKey}},
		"no key":              {func(d map[string][]byte) { delete(d, PrivateKey) }, []string{AuthorityKey, TokenKey}},
		"another's":           {func(d map[string][]byte) { copyPair(d, w.secret(t, "c")) }, []string{AuthorityKey, TokenKey}},
		"a foreign authority": {func(d map[string][]byte) { d[AuthorityKey] = []byte("x") }, []string{CertificateKey, PrivateKey, TokenKey}},
	} {
		t.Run(name, func(t *testing.T) {
			before := w.secret(t, "b")
			w.update(t, "b", test.damage)
			w.reconcile(t)
			after := w.secret(t, "b")
			requireKept(t, name, before, after, test.kept...)
			if err := usable("b", w.creds.authority.CABundle(), after, w.clock.Now()); err != nil || len(after[TokenKey]) < leastToken {
				t.Errorf("the Secret is not mended: %v", err)
			}
			if own, err := newIdentity(after); err != nil || own.member() != "b" {
				t.Errorf("the certificate is of member %q, %v", own.member(), err)
			}
		})
	}
}

func copyPair(into, from map[string][]byte) {
	into[CertificateKey], into[PrivateKey] = from[CertificateKey], from[PrivateKey]
}

func requireKept(t *testing.T, when string, before, after map[string][]byte, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if !bytes.Equal(before[key], after[key]) {
			t.Errorf("%s: %s is another", when, key)
		}
	}
}

// knock shakes hands by the hub's clock.
func knock(w *world, own identity) error {
	config := own.tls()
	config.Time = w.clock.Now
	config.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", w.address, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// TestNoMembersNoAuthority makes nothing for a hub whose budgets nobody else shares.
func TestNoMembersNoAuthority(t *testing.T) {
	w := newWorld(t)
	w.budgets.set(budgetID, params(100, "a"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.creds.Start(ctx) }()
	eventually(t, "a look at the members", w.clock.HasWaiters)
	if err := w.kube.Get(t.Context(), secretNamed(w, AuthoritySecret), &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is an authority: %v", err)
	}
	w.budgets.set(budgetID, params(100, "a", "b"))
	w.creds.Refresh()
	w.secret(t, "b")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestKeyring reads a token as seldom as it may, and as often as it must.
func TestKeyring(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Now())
	token, failure, reads := "good", error(nil), 0
	k := newKeyring(func(context.Context, string) (string, error) { reads++; return token, failure }, now)
	check := func(what, shown string, want bool, wantErr error, wantReads int) {
		t.Helper()
		if got, err := k.accepts(t.Context(), "b", shown); got != want || !errors.Is(err, wantErr) || reads != wantReads {
			t.Errorf("%s: %v, %v after %d reads; want %v, %v after %d", what, got, err, reads, want, wantErr, wantReads)
		}
	}
	check("the first call", "good", true, nil, 1)
	check("the next", "good", true, nil, 1)
	check("a wrong one at once", "bad", false, nil, 1)
	check("none", "", false, nil, 1)
	now.SetTime(now.Now().Add(keyReadPace))
	check("a wrong one a second later", "bad", false, nil, 2)
	token = "new"
	now.SetTime(now.Now().Add(keyReadPace))
	check("a new one", "new", true, nil, 3)
	check("the old one", "good", false, nil, 3)
	failure = errors.New("no route")
	now.SetTime(now.Now().Add(keyFreshFor))
	check("when the Secret cannot be read", "new", true, nil, 4)
	check("a wrong one then", "bad", false, failure, 5)
	now.SetTime(now.Now().Add(keyKeptFor))
	check("when it cannot be read for long", "new", false, failure, 6)
	token, failure = "", nil
	check("when it is gone", "new", false, nil, 7)
}
