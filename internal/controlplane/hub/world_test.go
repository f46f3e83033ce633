package hub

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

const (
	patience = 15 * time.Second
	budgetID = "acme/checkout"
)

// fakeBudgets are what the hub's FederatedBudgets say.
type fakeBudgets struct {
	mu      sync.Mutex
	budgets map[string]ledger.Params
}

func (b *fakeBudgets) Budget(id string) (ledger.Params, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.budgets[id]
	return p, ok
}

func (b *fakeBudgets) Members() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var names []string
	for _, p := range b.budgets {
		for _, m := range p.Members {
			names = append(names, m.Name)
		}
	}
	return names
}

// Credentialed returns all but the hub.
func (b *fakeBudgets) Credentialed() []string {
	names := slices.Compact(slices.Sorted(slices.Values(b.Members())))
	return slices.DeleteFunc(names, func(name string) bool { return name == "a" })
}

func (b *fakeBudgets) set(id string, p ledger.Params) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.budgets[id] = p
}

func (b *fakeBudgets) drop(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.budgets, id)
}

func params(limit int64, members ...string) ledger.Params {
	p := ledger.Params{Limit: limit, Window: limiter.Second, Strategy: ledger.FirstCome, Block: max(1, limit/10)}
	for _, name := range slices.Sorted(slices.Values(members)) {
		p.Members = append(p.Members, ledger.Member{Name: name, Weight: 1, Borrowing: -1})
	}
	return p
}

// counted is a coordinator that knows how often it was asked.
type counted struct {
	Coordinator
	calls atomic.Int64
}

func (c *counted) Apply(ctx context.Context, id string, p ledger.Params, cmd ledger.Command) (ledger.Grant, error) {
	c.calls.Add(1)
	return c.Coordinator.Apply(ctx, id, p, cmd)
}

func (c *counted) ApplyKeys(ctx context.Context, id string, p ledger.Params, r keys.Request) (keys.Reply, error) {
	c.calls.Add(1)
	return c.Coordinator.ApplyKeys(ctx, id, p, r)
}

func (c *counted) Observe(ctx context.Context, id string) (ledger.State, error) {
	c.calls.Add(1)
	return c.Coordinator.Observe(ctx, id)
}

// A leader's leadership can be taken from it.
type leader struct{ lost atomic.Bool }

func (l *leader) Held() bool { return !l.lost.Load() }

// A world is one hub in a namespace of its own, with members a, which is the hub, b
// and c.
type world struct {
	kube        client.Client
	namespace   string
	maps        corev1client.ConfigMapInterface
	clock       *clocktesting.FakeClock
	budgets     *fakeBudgets
	coordinator *counted
	leader      *leader
	creds       *Credentials
	server      *Server
	audits      *Audits
	address     string
	stop        func() // ends the server and waits for it
}

func newWorld(t *testing.T) *world {
	t.Helper()
	config, err := apiServer()
	if err != nil {
		t.Fatal(err)
	}
	kube, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "hub-"}}
	if err := kube.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		kube: kube, namespace: ns.Name, maps: core.ConfigMaps(ns.Name),
		clock:   clocktesting.NewFakeClock(time.Now()),
		budgets: &fakeBudgets{budgets: map[string]ledger.Params{budgetID: params(100, "a", "b", "c")}},
		leader:  &leader{},
	}
	now := func() limiter.Instant { return limiter.Instant(w.clock.Now().UnixMicro()) }
	w.coordinator = &counted{Coordinator: kubernetes.New(kubernetes.Options{Journal: NewJournal(w.maps), Clock: now})}
	w.creds = NewCredentials(CredentialsConfig{
		Client: kube, Namespace: ns.Name, Self: "a", Budgets: w.budgets, Names: []string{"127.0.0.1"}, Clock: w.clock,
	})
	return w
}

// start runs the credentials and the server, and waits until members have their Secrets.
func (w *world) start(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	listening := make(chan string, 1)
	w.server = NewServer(ServerConfig{
		Address: "127.0.0.1:0", Coordinator: w.coordinator, Audits: w.audits, Budgets: w.budgets, Credentials: w.creds, Leadership: w.leader,
	})
	listen := w.server.listen
	w.server.listen = func(ctx context.Context, address string) (net.Listener, error) {
		l, err := listen(ctx, address)
		if err == nil {
			listening <- l.Addr().String()
		}
		return l, err
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.creds.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() {
		if err := w.server.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	w.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(w.stop)
	w.address = <-listening
	w.secret(t, "c") // the last that is made
	return w
}

// eventually waits until done says so.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}

// secret returns the data of a member's Secret, once it is there.
func (w *world) secret(t *testing.T, member string) map[string][]byte {
	t.Helper()
	s := &corev1.Secret{}
	eventually(t, "the Secret of member "+member, func() bool {
		return w.kube.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: MemberPrefix + member}, s) == nil
	})
	return s.Data
}

// open returns a client of the hub by the data of a Secret.
func (w *world) open(t *testing.T, secret map[string][]byte) *Client {
	t.Helper()
	c, err := new(Connections).Open(w.address, secret)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func with(secret map[string][]byte, change ...map[string][]byte) map[string][]byte {
	out := maps.Clone(secret)
	for _, c := range change {
		maps.Copy(out, c)
	}
	return out
}

func lease(member string, seq, want int64) ledger.Command {
	return ledger.Command{Op: ledger.Lease, Member: member, Holder: "h-" + member, Seq: seq, Min: 1, Want: want}
}

func secretNamed(w *world, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.namespace, Name: name}
}
