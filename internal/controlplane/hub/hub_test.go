package hub

import (
	"context"
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
