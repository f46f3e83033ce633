package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

var _ federation.Coordinator = (*Client)(nil)

// TestMembersShareABudget leases over real connections from two members, with the budget
// in the memory of the hub and in a real API server.
func TestMembersShareABudget(t *testing.T) {
	w := newWorld(t).start(t)
	p, _ := w.budgets.Budget(budgetID)
	own := p
	own.Limit, own.Block, own.Members = 1, 0, p.Members[1:] // the hub's count
	b, c := w.open(t, w.secret(t, "b")), w.open(t, w.secret(t, "c"))
	if b.Member() != "b" {
		t.Errorf("the certificate names %q", b.Member())
	}
	g, err := b.Apply(t.Context(), budgetID, own, lease("b", 1, 60))
	if err != nil || g.Reason != ledger.Amnesia {
		t.Fatalf("the first window: %+v, %v", g, err)
	}
	w.clock.Step(time.Second)
	h := ledger.Grant{}
	for seq := int64(2); g.Reason != ledger.Exhausted; seq++ {
		if g, err = b.Apply(t.Context(), budgetID, own, after(lease("b", seq, 7), g)); err != nil {
			t.Fatal(err)
		}
		if h, err = c.Apply(t.Context(), budgetID, own, after(lease("c", seq, 5), h)); err != nil {
			t.Fatal(err)
		}
	}
	if sum := g.Granted + h.Granted; sum != 100 {
		t.Errorf("granted %d units, want 100", sum)
	}
	got, err := c.Observe(t.Context(), budgetID)
	if err != nil {
		t.Fatal(err)
	}
	want, err := w.coordinator.Observe(t.Context(), budgetID)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("observed (-want +got) %v\n%s", err, diff)
	}
}

// after makes a command ask beyond what the holder has in the epoch of g.
func after(c ledger.Command, g ledger.Grant) ledger.Command {
	c.Epoch, c.Granted = g.Epoch, g.Granted
	return c
}

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

// TestOpenConnections stay open when a certificate ends, a Secret is deleted or the
// leadership is lost, but nothing is answered on them any more.
func TestOpenConnections(t *testing.T) {
	w := newWorld(t).start(t)
	p, _ := w.budgets.Budget(budgetID)
	b := w.open(t, w.secret(t, "b"))
	call := func() error {
		_, err := b.Apply(t.Context(), budgetID, p, lease("b", 1, 5))
		return err
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	w.leader.lost.Store(true)
	requireUnavailable(t, call())
	w.leader.lost.Store(false)

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: MemberPrefix + "b"}}
	if err := w.kube.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(keyFreshFor)
	requireRefused(t, call(), w.address, Unauthorized, "copy Secret weir-member-b")

	w.creds.Refresh()
	again := w.open(t, w.secret(t, "b"))
	w.clock.Step(keyReadPace)
	if _, err := again.Apply(t.Context(), budgetID, p, lease("b", 1, 5)); err != nil {
		t.Errorf("the Secret that was made again: %v", err)
	}
	requireRefused(t, call(), w.address, Unauthorized, "copy Secret weir-member-b")

	w.clock.Step(memberLife + time.Minute)
	_, err := again.Apply(t.Context(), budgetID, p, lease("b", 1, 5))
	requireRefused(t, err, w.address, CertificateExpired, "copy Secret weir-member-b")
}

func requireUnavailable(t *testing.T, err error) {
	t.Helper()
	if unavailable := (*store.UnavailableError)(nil); !errors.As(err, &unavailable) {
		t.Errorf("got %v, want a store.UnavailableError", err)
	}
}

// TestUnreachable is about hubs that are not there, do not answer, or go.
func TestUnreachable(t *testing.T) {
	w := newWorld(t).start(t)
	p, _ := w.budgets.Budget(budgetID)
	secret := w.secret(t, "b")
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	call := func(address string) error {
		client, err := new(Connections).Open(address, secret)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err = client.Apply(ctx, budgetID, p, lease("b", 1, 5))
		return err
	}
	requireUnavailable(t, call(silent.Addr().String()))
	unused := &Connections{Control: func(context.Context, string, string, syscall.RawConn) error {
		return &store.Failure{Why: "it may not be dialled"}
	}}
	denied, err := unused.Open(w.address, secret)
	if err != nil {
		t.Fatal(err)
	}
	defer denied.Close()
	_, err = denied.Apply(t.Context(), budgetID, p, lease("b", 1, 5))
	requireUnavailable(t, err)
	if got := store.Plain(err).Error(); got != "hub "+w.address+": it may not be dialled" {
		t.Errorf("an address that may not be dialled: %s", got)
	}
	if err := call(w.address); err != nil {
		t.Error(err)
	}
	w.stop()
	requireUnavailable(t, call(w.address))
}

// TestHubThatCannotAnswer has a coordinator that is sealed.
func TestHubThatCannotAnswer(t *testing.T) {
	w := newWorld(t).start(t)
	p, _ := w.budgets.Budget(budgetID)
	b := w.open(t, w.secret(t, "b"))
	w.coordinator.Coordinator = unavailableCoordinator{}
	_, err := b.Apply(t.Context(), budgetID, p, lease("b", 1, 5))
	requireUnavailable(t, err)
	if !strings.Contains(err.Error(), "no route") {
		t.Errorf("the cause is hidden: %v", err)
	}
	_, err = b.Observe(t.Context(), budgetID)
	requireUnavailable(t, err)
}

type unavailableCoordinator struct{ Coordinator }

func (unavailableCoordinator) Apply(context.Context, string, ledger.Params, ledger.Command) (ledger.Grant, error) {
	return ledger.Grant{}, &store.UnavailableError{Store: "the API server", Cause: errors.New("no route")}
}

func (unavailableCoordinator) Observe(context.Context, string) (ledger.State, error) {
	return ledger.State{}, &store.UnavailableError{Store: "the API server", Cause: errors.New("no route")}
}

// TestStopWaitsForCalls ends the server while a call is under way: it is answered.
func TestStopWaitsForCalls(t *testing.T) {
	w := newWorld(t).start(t)
	p, _ := w.budgets.Budget(budgetID)
	b := w.open(t, w.secret(t, "b"))
	slow := &slowCoordinator{Coordinator: w.coordinator.Coordinator, entered: make(chan struct{}), proceed: make(chan struct{})}
	w.coordinator.Coordinator = slow
	answered := make(chan error, 1)
	go func() {
		_, err := b.Apply(t.Context(), budgetID, p, lease("b", 1, 5))
		answered <- err
	}()
	<-slow.entered
	stopped := make(chan struct{})
	go func() { w.stop(); close(stopped) }()
	time.AfterFunc(100*time.Millisecond, func() { close(slow.proceed) })
	<-stopped
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

type slowCoordinator struct {
	Coordinator
	entered, proceed chan struct{}
}

func (s *slowCoordinator) Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	close(s.entered)
	<-s.proceed
	return s.Coordinator.Apply(ctx, id, p, c)
}

// TestHandshakesAreCounted connects again and again.
func TestHandshakesAreCounted(t *testing.T) {
	w := newWorld(t).start(t)
	p, _ := w.budgets.Budget(budgetID)
	secret := w.secret(t, "b")
	var refused int
	for range maxHandshakes + 5 {
		client, err := new(Connections).Open(w.address, secret)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Apply(t.Context(), budgetID, p, lease("b", 1, 5)); err != nil {
			requireUnavailable(t, err)
			refused++
		}
		client.Close()
	}
	if refused == 0 {
		t.Error("a member may connect as often as it likes")
	}
	if _, err := w.open(t, w.secret(t, "c")).Apply(t.Context(), budgetID, p, lease("c", 1, 5)); err != nil {
		t.Errorf("another member: %v", err)
	}
	w.clock.Step(handshakeSpan)
	if _, err := w.open(t, secret).Apply(t.Context(), budgetID, p, lease("b", 1, 5)); err != nil {
		t.Errorf("later: %v", err)
	}
}

// TestConnectionsAreShared by clients of one hub with the same credentials.
func TestConnectionsAreShared(t *testing.T) {
	w := newWorld(t).start(t)
	p, _ := w.budgets.Budget(budgetID)
	var all Connections
	open := func(secret map[string][]byte) *Client {
		client, err := all.Open(w.address, secret)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	one, two, other := open(w.secret(t, "b")), open(w.secret(t, "b")), open(w.secret(t, "c"))
	if one.conn != two.conn || one.conn == other.conn {
		t.Error("connections are not one for each endpoint and credentials")
	}
	one.Close()
	one.Close()
	if _, err := two.Apply(t.Context(), budgetID, p, lease("b", 1, 5)); err != nil {
		t.Errorf("after another client was closed: %v", err)
	}
	two.Close()
	other.Close()
	if len(all.open) > 0 {
		t.Errorf("%d connections stay open", len(all.open))
	}
}

// TestOpenNamesWhatIsWrong with an endpoint or a Secret, and shows nothing of it.
func TestOpenNamesWhatIsWrong(t *testing.T) {
	w := newWorld(t).start(t)
	good := w.secret(t, "b")
	for what, test := range map[string]struct {
		endpoint string
		secret   map[string][]byte
	}{
		"spec.hub.endpoint":   {"hub", good},
		"endpoint \"hub:0\"":  {"hub:0", good},
		"endpoint \":15040\"": {":15040", good},
		AuthorityKey:          {"hub:1", with(good, map[string][]byte{AuthorityKey: nil})},
		CertificateKey:        {"hub:1", with(good, map[string][]byte{CertificateKey: []byte("x")})},
		PrivateKey:            {"hub:1", with(good, part(w.secret(t, "c"), PrivateKey))},
		TokenKey:              {"hub:1", with(good, map[string][]byte{TokenKey: []byte("two\nlines")})},
		"spec.hub.secretRef":  {"hub:1", nil},
	} {
		if _, err := new(Connections).Open(test.endpoint, test.secret); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
