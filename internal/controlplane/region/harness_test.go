package region

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/pkg/federation"
	coordinator "github.com/weir-dev/weir/pkg/federation/coordinator/memory"
	"github.com/weir-dev/weir/pkg/federation/escrow"
	escrows "github.com/weir-dev/weir/pkg/federation/escrow/memory"
	"github.com/weir-dev/weir/pkg/federation/keyed"
	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// A world is what a Set works with: the budgets and Secrets of a cluster, and the places
// where budgets are kept.
type world struct {
	t     *testing.T
	set   *Set
	stop  context.CancelFunc
	done  chan struct{}
	local *root

	mu      sync.Mutex
	budgets []policy.FederatedBudget
	failure error             // of reading them
	secrets map[string]string // version by name
	reading chan struct{}     // Secrets are read once it is closed; nil: at once
	roots   map[string]*root  // by address
	opened  []string          // places, with the version of their Secret
	closed  []string
	counted map[int64]ledger.Usage // by window
	valued  func(index int64, wanted []string) audit.ValueUsage
	looked  []look          // what was counted
	escrows *escrows.Escrow // of every store

	life    func(version string) (from, until time.Time) // of certificates
	renewed []time.Time                                  // when a certificate was asked for
	refusal error                                        // of the hub, when it is asked for one
	unkept  error                                        // why the Secret cannot be written
	undoes  bool                                         // somebody puts the old Secret back

	escrowed string // id of the escrow used last
	changed  []types.NamespacedName
}

// A look is what usage was asked for.
type look struct {
	id            string
	open          limiter.OpenWindow
	before, after time.Time
}

// A root is a coordinator that can be cut off.
type root struct {
	federation.Coordinator
	values   keyed.Coordinator
	audits   *hub.Audits
	mu       sync.Mutex
	failure  error
	keyless  error // of reports of values
	commands []ledger.Command
	hangs    bool
	loses    ledger.Op // commands of that kind
	only     string    // the one member that is listed, all when empty
	sealed   bool
	rows     []budgetaudit.ValueRow // that this cluster sent
}

func newRoot() *root {
	c := coordinator.New(coordinator.Options{Clock: wall, Term: 1, First: true})
	return &root{Coordinator: c, values: c, audits: hub.NewAudits()}
}

func wall() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }

func (r *root) Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	r.mu.Lock()
	r.commands = append(r.commands, c)
	err := r.failure
	if r.sealed {
		err = errSealed
	}
	if r.loses == c.Op {
		err = errCut
	}
	if r.only != "" {
		p.Members = []ledger.Member{{Name: r.only, Weight: 1, Borrowing: -1}}
	}
	hangs := r.hangs
	r.mu.Unlock()
	time.Sleep(time.Millisecond) // on the way
	if hangs {
		<-ctx.Done()
		return ledger.Grant{}, &store.UnavailableError{Store: "the hub", Cause: ctx.Err()}
	}
	if err != nil {
		return ledger.Grant{}, err
	}
	return r.Coordinator.Apply(ctx, id, p, c)
}

func (r *root) ApplyKeys(ctx context.Context, id string, p ledger.Params, q keys.Request) (keys.Reply, error) {
	r.mu.Lock()
	err := r.failure
	r.mu.Unlock()
	time.Sleep(time.Millisecond) // on the way
	if err != nil {
		return keys.Reply{}, err
	}
	return r.values.ApplyKeys(ctx, id, p, q)
}

func (r *root) ReportKeys(ctx context.Context, id, member string, p ledger.Params, row *budgetaudit.ValueRow) (budgetaudit.Answer, error) {
	r.mu.Lock()
	err := cmp.Or(r.failure, r.keyless)
	if row != nil && member == "a" {
		r.rows = append(r.rows, *row)
	}
	r.mu.Unlock()
	if err != nil {
		return budgetaudit.Answer{}, err
	}
	return r.audits.ReportKeys(ctx, id, member, p, row)
}

func (r *root) Observe(ctx context.Context, id string) (ledger.State, error) {
	r.mu.Lock()
	err := r.failure
	r.mu.Unlock()
	if err != nil {
		return ledger.State{}, err
	}
	return r.Coordinator.Observe(ctx, id)
}

func (r *root) Seal(context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sealed = true
}

// fail lets every call fail; nil ends that.
func (r *root) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failure = err
}

// knows has reports of values be refused with an error; nil ends that.
func (r *root) knows(refusal error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keyless = refusal
}

// lose lets commands of that kind get lost; 0 ends that.
func (r *root) lose(op ledger.Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loses = op
}

// lists makes one member the only one.
func (r *root) lists(member string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.only = member
}

// hang lets calls wait until their callers give up.
func (r *root) hang() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hangs = true
}

// sent returns the commands of that kind, in order.
func (r *root) sent(op ledger.Op) []ledger.Command {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []ledger.Command
	for _, c := range r.commands {
		if c.Op == op {
			out = append(out, c)
		}
	}
	return out
}

// granted returns what the holders of the budget hold in its open window.
func (r *root) granted(t *testing.T, id string) int64 {
	t.Helper()
	s, err := r.Coordinator.Observe(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, a := range s.Accounts {
		sum += a.Granted
	}
	return sum
}

var (
	errSealed = &store.UnavailableError{Store: "the local coordinator", Cause: errors.New("sealed")}
	errCut    = &store.UnavailableError{Store: "the hub", Cause: &store.Failure{Why: "cut off"}}
)

// start runs a Set until the test ends.
func start(t *testing.T, budgets ...policy.FederatedBudget) *world {
	t.Helper()
	w := &world{
		t: t, local: newRoot(), budgets: budgets, done: make(chan struct{}),
		secrets: map[string]string{"shop/hub": "1", "shop/redis": "1"}, roots: map[string]*root{}, counted: map[int64]ledger.Usage{},
		escrows: escrows.New(escrows.Options{Clock: wall}),
		life:    func(string) (from, until time.Time) { return time.Now().Add(time.Hour), time.Now().Add(2 * time.Hour) },
	}
	w.set = New(Config{
		Source: w, Cluster: "cluster-a", Local: w.local, Auditor: w.local, Log: logr.Discard(),
		Dial: w.dial, Open: w.open,
	}, budget.Counts{Usage: w.usage, Values: w.values}, w.note)
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	go func() {
		defer close(w.done)
		w.set.Run(ctx)
	}()
	synctest.Wait()
	return w
}

// end stops the Set in good order.
func (w *world) end() {
	w.stop()
	<-w.done
}

// has has the cluster take part in these budgets.
func (w *world) has(budgets ...policy.FederatedBudget) {
	w.mu.Lock()
	w.budgets = budgets
	w.mu.Unlock()
	w.follow()
}

// follow waits until the budgets and Secrets were read again.
func (w *world) follow() {
	time.Sleep(followEvery)
	synctest.Wait()
}

// secret has the Secret hold what that version does; an empty version stands for no Secret.
func (w *world) secret(name, version string) {
	w.mu.Lock()
	w.secrets[name] = version
	w.mu.Unlock()
	w.follow()
}

func (w *world) FederatedBudgets(context.Context) ([]policy.FederatedBudget, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]policy.FederatedBudget, len(w.budgets))
	for i, b := range w.budgets {
		if b.Hub != nil {
			b.Hub = new(*b.Hub)
			b.Hub.SecretVersion = w.secrets[b.Hub.Secret]
		}
		if b.Escrow.Secret != "" {
			b.Escrow.SecretVersion = w.secrets[b.Escrow.Secret]
		}
		out[i] = b
	}
	return out, w.failure
}

func (w *world) Secret(ctx context.Context, s policy.Store) (map[string][]byte, error) {
	w.mu.Lock()
	version, reading := w.secrets[s.Secret], w.reading
	w.mu.Unlock()
	if reading != nil {
		select {
		case <-reading:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if version == "" {
		return nil, fmt.Errorf("there is no secret %s", s.Secret)
	}
	return map[string][]byte{"token": []byte(version)}, nil
}

// root returns the one at an address.
func (w *world) root(address string) *root {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.roots[address] == nil {
		w.roots[address] = newRoot()
	}
	return w.roots[address]
}

// A way is an open connection to a root.
type way struct {
	*root
	w       *world
	name    string
	version string
	mu      sync.Mutex
	over    bool
}

func (w *world) way(address string, secret map[string][]byte) *way {
	v := &way{root: w.root(address), w: w, name: address + "@" + string(secret["token"]), version: string(secret["token"])}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened = append(w.opened, v.name)
	return v
}

func (v *way) Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	v.alive()
	return v.root.Apply(ctx, id, p, c)
}

func (v *way) alive() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.over {
		v.w.t.Errorf("%s was used after it was closed", v.name)
	}
}

func (v *way) Close() {
	v.mu.Lock()
	v.over = true
	v.mu.Unlock()
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	v.w.closed = append(v.w.closed, v.name)
}

// Renewable implements Hub: the version of the Secret says which certificate it is.
func (v *way) Renewable() (from, until time.Time) {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	return v.w.life(v.version)
}

// Renew implements Hub.
func (v *way) Renew(ctx context.Context) (hub.Renewal, error) {
	v.alive()
	v.w.mu.Lock()
	v.w.renewed = append(v.w.renewed, time.Now())
	err := v.w.refusal
	v.w.mu.Unlock()
	time.Sleep(time.Millisecond) // on the way
	return hub.Renewal{Before: []byte(v.version)}, errors.Join(err, ctx.Err())
}

// Keep implements Source.
func (w *world) Keep(_ context.Context, of policy.Hub, r hub.Renewal) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unkept != nil {
		return w.unkept
	}
	if w.secrets[of.Secret] == string(r.Before) && !w.undoes {
		w.secrets[of.Secret] += "+"
	}
	return nil
}

func (w *world) dial(of policy.Hub, secret map[string][]byte) (Hub, error) {
	return w.way(of.Endpoint, secret), nil
}

// keeping notes which budgets have escrows.
type keeping struct {
	*escrows.Escrow
	of *way
}

func (k keeping) Apply(ctx context.Context, id string, c escrow.Command) (escrow.Result, error) {
	k.of.alive()
	k.of.w.mu.Lock()
	k.of.w.escrowed = id
	k.of.w.mu.Unlock()
	return k.Escrow.Apply(ctx, id, c)
}

func (w *world) open(of policy.Store, secret map[string][]byte) (Server, error) {
	v := w.way(of.Address, secret)
	return Server{Ledger: v, Escrow: keeping{Escrow: w.escrows, of: v}, Close: func() error { v.Close(); return nil }}, nil
}

// changes returns how often changed was called.
func (w *world) changes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.changed)
}

// shut returns the ways that were closed, in order.
func (w *world) shut() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.closed)
}

func (w *world) usage(id string, open limiter.OpenWindow, before, after time.Time) ledger.Usage {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked = append(w.looked, look{id, open, before, after})
	u := w.counted[open.Index]
	u.Index = open.Index
	return u
}

func (w *world) values(_ string, open limiter.OpenWindow, _, _ time.Time, wanted []string) audit.ValueUsage {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.valued == nil {
		return audit.ValueUsage{}
	}
	return w.valued(open.Index, wanted)
}

func (w *world) note(name types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = append(w.changed, name)
}

// own returns a budget of that many units a second that this cluster keeps, for itself
// and one other.
func own(id string, limit int64) policy.FederatedBudget {
	return policy.FederatedBudget{
		ID: id, Namespace: "shop", Name: "budget", Generation: 1, Member: "a",
		Params: ledger.Params{
			Limit: limit, Window: limiter.Second, Strategy: ledger.FirstCome,
			Members: []ledger.Member{{Name: "a", Weight: 1, Borrowing: -1}, {Name: "b", Weight: 1, Borrowing: -1}},
		},
		Coordinator: policy.Store{Type: policy.ControllerStore}, Escrow: policy.Store{Type: policy.ControllerStore},
		OnCoordinatorOutage: policy.BudgetFailClosed, Batch: policy.Batch{Type: policy.Fixed, Size: 10},
	}
}

// at returns b as it is kept by the hub at an address.
func at(b policy.FederatedBudget, address string) policy.FederatedBudget {
	b.Hub = &policy.Hub{Endpoint: address, Secret: "shop/hub"}
	return b
}

// apply sends a command on behalf of a limit of the namespace.
func (w *world) apply(namespace string, of policy.FederatedBudget, c limiter.Command) (limiter.Result, error) {
	key := store.Key{Scope: store.Scope{Cluster: "cluster-a", Namespace: namespace, Policy: "checkout", Limit: "all"}}
	p := limiter.Params{Rates: []limiter.Rate{{Limit: of.Params.Limit, Window: of.Params.Window}}, Generation: 1}
	return w.set.Apply(w.t.Context(), namespace, policy.BudgetRef{ID: of.ID, Name: of.Name}, key, p, c)
}

// takes asks for units until as many were granted, or fails.
func (w *world) takes(of policy.FederatedBudget, n int64) {
	w.t.Helper()
	for range 100 {
		res, err := w.apply(of.Namespace, of, limiter.Command{Op: limiter.Take, Min: 1, Want: n})
		if err != nil {
			w.t.Fatal(err)
		}
		if n -= res.Granted; n == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	w.t.Fatalf("%d units were not granted", n)
}
