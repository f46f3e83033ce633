package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/objectcache"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/testing/apiserver"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

const (
	cluster = "eu-west" // this one

	patience = 15 * time.Second
	interval = 20 * time.Millisecond
	// quiet is how long a test watches that nothing happens.
	quiet = 400 * time.Millisecond
)

// All tests of the suite share these; each test uses a namespace of its own.
var (
	server  client.Client // reads from the API server
	fleet   = newFakeFleet()
	stores  = &fakeStores{}
	secrets = &fakeSecrets{}
	keys    = &fakeKeys{}
	clock   = clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 10, 15, 0, 0, time.UTC))
	writes  atomic.Int64 // of any status
	held    hold
)

// A hold keeps status writes from the API server while a test has it closed.
type hold struct {
	closed  sync.RWMutex
	waiting atomic.Int64 // writes
}

func (h *hold) pass() {
	h.waiting.Add(1)
	h.closed.RLock()
	h.waiting.Add(-1)
	h.closed.RUnlock()
}

func TestMain(m *testing.M) {
	apiserver.Main(apiserver.WithDefinitions(filepath.Join("..", "config", "crd", "bases")), func(config *rest.Config) (int, error) {
		return runSuite(m, config)
	})
}

func runSuite(m *testing.M, config *rest.Config) (code int, err error) {
	leaks := []goleak.Option{
		goleak.IgnoreCurrent(),
		// client-go shares idle connections for the life of the process.
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
	}

	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	mgr, err := newManager(config)
	if err != nil {
		cancel()
		return 0, err
	}
	go func() { stopped <- mgr.Start(ctx) }()
	code = m.Run()
	cancel()
	if err := <-stopped; err != nil {
		return code, fmt.Errorf("manager: %w", err)
	}
	return code, eventuallyNoLeaks(leaks)
}

func newManager(config *rest.Config) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	var err error
	if server, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:    scheme,
		Cache:     objectcache.Options(),
		Metrics:   metricsserver.Options{BindAddress: "0"},
		NewClient: counting(&writes),
	})
	if err != nil {
		return nil, err
	}
	ids, err := resolve.ParseIDs([]string{"*=acme/*"})
	if err != nil {
		return nil, err
	}
	events := mgr.GetEventRecorder("weir-controller")
	policies := &controllers.RateLimitPolicyReconciler{Client: mgr.GetClient(), Pods: mgr.GetCache(), Cluster: cluster, IDs: ids, Fleet: fleet, Stores: stores, Secrets: secrets, Keys: keys, Events: events, Clock: clock}
	pools := &controllers.ConcurrencyPoolReconciler{Client: mgr.GetClient(), Pods: mgr.GetCache(), Fleet: fleet, Secrets: secrets, Events: events, Clock: clock}
	budgets := &controllers.FederatedBudgetReconciler{Client: mgr.GetClient(), Cluster: cluster, IDs: ids, Budgets: fleet, Events: events, Clock: clock}
	return mgr, errors.Join(policies.SetupWithManager(mgr), pools.SetupWithManager(mgr), budgets.SetupWithManager(mgr))
}

// counting returns what makes clients that count the status writes that the API server
// accepted, and that a test may hold.
func counting(writes *atomic.Int64) client.NewClientFunc {
	return func(config *rest.Config, options client.Options) (client.Client, error) {
		base, err := client.NewWithWatch(config, options)
		if err != nil {
			return nil, err
		}
		counted := func(write func() error) error {
			held.pass()
			err := write()
			if err == nil {
				writes.Add(1)
			}
			return err
		}
		return interceptor.NewClient(base, interceptor.Funcs{
			SubResourceUpdate: func(
				ctx context.Context, c client.Client, resource string, object client.Object, options ...client.SubResourceUpdateOption,
			) error {
				return counted(func() error { return c.SubResource(resource).Update(ctx, object, options...) })
			},
			SubResourcePatch: func(
				ctx context.Context, c client.Client, resource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
			) error {
				return counted(func() error { return c.SubResource(resource).Patch(ctx, object, patch, options...) })
			},
		}), nil
	}
}

func eventuallyNoLeaks(options []goleak.Option) (found error) {
	_ = wait.PollUntilContextTimeout(context.Background(), interval, patience, true, func(context.Context) (bool, error) {
		found = goleak.Find(options...)
		return found == nil, nil
	})
	return found
}

// fakeFleet is a fleet whose sidecars report what a test sets.
type fakeFleet struct {
	changed        chan types.NamespacedName
	poolsChanged   chan types.NamespacedName
	budgetsChanged chan types.NamespacedName

	mu           sync.Mutex
	observations map[types.NamespacedName]coordinator.Observation
	pools        map[types.NamespacedName]coordinator.PoolObservation
	budgets      map[types.NamespacedName]budget.Observation
	refreshed    map[string]int // by namespace
	follows      bool           // somebody else leads
	reset        []string       // counters that were set back
	resetErr     error
	buried       map[types.NamespacedName][]string // UIDs of pods
}

func newFakeFleet() *fakeFleet {
	return &fakeFleet{
		changed:        make(chan types.NamespacedName),
		poolsChanged:   make(chan types.NamespacedName),
		budgetsChanged: make(chan types.NamespacedName),
		observations:   map[types.NamespacedName]coordinator.Observation{},
		pools:          map[types.NamespacedName]coordinator.PoolObservation{},
		budgets:        map[types.NamespacedName]budget.Observation{},
		refreshed:      map[string]int{},
		buried:         map[types.NamespacedName][]string{},
	}
}

func (f *fakeFleet) Refresh(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refreshed[namespace]++
}

func (f *fakeFleet) Observe(namespace, name string) coordinator.Observation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.observations[types.NamespacedName{Namespace: namespace, Name: name}]
}

// Reset notes what is set back.
func (f *fakeFleet) Reset(_ context.Context, scope store.Scope, hash *string) (limiter.Instant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reset = append(f.reset, fmt.Sprintf("%s %v", scope, hash))
	return 1_800_000_000_000_000, f.resetErr
}

func (f *fakeFleet) Now() (limiter.Instant, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return limiter.Instant(clock.Now().UnixMicro()), !f.follows
}

// lead has somebody else lead, or this process again.
func (f *fakeFleet) lead(leads bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.follows = !leads
}

func (f *fakeFleet) Bury(namespace, name string, podUIDs []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.buried[types.NamespacedName{Namespace: namespace, Name: name}] = podUIDs
}

// buriedOf returns the pods that were last said to be gone.
func (f *fakeFleet) buriedOf(policy types.NamespacedName) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.buried[policy]
}

func (f *fakeFleet) Changed() <-chan types.NamespacedName { return f.changed }

// say has the fleet say something new of a policy.
func (f *fakeFleet) say(policy types.NamespacedName, o coordinator.Observation) {
	f.mu.Lock()
	f.observations[policy] = o
	f.mu.Unlock()
	f.changed <- policy
}

func (f *fakeFleet) ObservePool(namespace, name string) coordinator.PoolObservation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pools[types.NamespacedName{Namespace: namespace, Name: name}]
}

func (f *fakeFleet) PoolsChanged() <-chan types.NamespacedName { return f.poolsChanged }

// sayOfPool has the fleet say something new of a pool.
func (f *fakeFleet) sayOfPool(pool types.NamespacedName, o coordinator.PoolObservation) {
	f.mu.Lock()
	f.pools[pool] = o
	f.mu.Unlock()
	f.poolsChanged <- pool
}

func (f *fakeFleet) ObserveBudget(namespace, name string) budget.Observation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.budgets[types.NamespacedName{Namespace: namespace, Name: name}]
}

func (f *fakeFleet) BudgetsChanged() <-chan types.NamespacedName { return f.budgetsChanged }

// sayOfBudget has something new be known of a budget.
func (f *fakeFleet) sayOfBudget(name types.NamespacedName, o budget.Observation) {
	f.mu.Lock()
	f.budgets[name] = o
	f.mu.Unlock()
	f.budgetsChanged <- name
}

func (f *fakeFleet) refreshes(namespace string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refreshed[namespace]
}

// fakeStores answer every call alike.
type fakeStores struct {
	mu    sync.Mutex
	err   error
	reset []string // counters that were set back
}

func (f *fakeStores) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeStores) Probe(context.Context, policy.Store, map[string][]byte) (store.Facts, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return store.Facts{Volatile: store.Keeping{Guarantee: store.Guarantee{Grade: store.HardExceptSplitBrain, Reason: "2 replicas"}}}, f.err
}

// Reset notes what is set back.
func (f *fakeStores) Reset(_ context.Context, of policy.Store, _ map[string][]byte, scope store.Scope, hash *string) (limiter.Instant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reset = append(f.reset, fmt.Sprintf("%s %s %v", of.Address, scope, hash))
	return 1_900_000_000_000_000, f.err
}

func (f *fakeStores) Clock(context.Context, policy.Store, map[string][]byte) (limiter.Instant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return limiter.Instant(clock.Now().Add(time.Minute).UnixMicro()), f.err
}

// fakeSecrets need not be read, but for one called missing.
type fakeSecrets struct{}

func (*fakeSecrets) Data(_ context.Context, of policy.Store) (map[string][]byte, string, error) {
	if strings.HasSuffix(of.Secret, "/missing") {
		return nil, "", fmt.Errorf("there is no secret %s", of.Secret)
	}
	return nil, "", nil
}
