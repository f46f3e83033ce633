package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// Fleet is what the reconciler of policies needs of the coordinator. But for Reset, which
// may wait for the API server, its methods do not block.
type Fleet interface {
	// Refresh makes every connected sidecar of the namespace receive what it has to
	// enforce now, if that is not what it was sent last.
	Refresh(namespace string)

	// Observe returns what the sidecars said about one policy.
	Observe(namespace, name string) coordinator.Observation

	// Bury takes it that the sidecars of these pods of a policy do not live on.
	Bury(namespace, name string, podUIDs []string)

	// Changed names policies with a change that a condition depends
	// on. Names may be repeated; the channel is never closed.
	Changed() <-chan types.NamespacedName

	// Reset sets all counters of a limit back in the controller's own store, or the one of
	// hash when it is not nil, and returns when that was, on its clock. After an error
	// some may be set back.
	Reset(ctx context.Context, scope store.Scope, hash *string) (limiter.Instant, error)

	// Now returns the time of the controller's own store, and false while this
	// process does not lead.
	Now() (limiter.Instant, bool)
}

// PoolFleet is what the reconciler of pools needs of the coordinator. Its methods do
// not block.
type PoolFleet interface {
	// Refresh is as of Fleet.
	Refresh(namespace string)

	// ObservePool returns what the sidecars said about one pool.
	ObservePool(namespace, name string) coordinator.PoolObservation

	// PoolsChanged names pools with a change that a condition depends on.
	// Names may be repeated; the channel is never closed.
	PoolsChanged() <-chan types.NamespacedName
}

// Budgets is what the reconciler of budgets needs of the regions that this cluster runs.
// Its methods do not block.
type Budgets interface {
	// ObserveBudget returns what is known of the budget of one FederatedBudget.
	ObserveBudget(namespace, name string) budget.Observation

	// BudgetsChanged names FederatedBudgets with a change that a condition
	// depends on: all of the observation but the ledger and what is counted. Names may
	// be repeated; the channel is never closed.
	BudgetsChanged() <-chan types.NamespacedName
}

var (
	_ Fleet     = (*coordinator.Coordinator)(nil)
	_ PoolFleet = (*coordinator.Coordinator)(nil)
	_ Budgets   = (*coordinator.Coordinator)(nil)
)

// StoreProbe asks stores, with the values of the Secret they name. It may block
// for as long as one attempt takes; an error means that the store could not be
// asked.
type StoreProbe interface {
	// Probe returns what a store says of itself.
	Probe(ctx context.Context, of policy.Store, secret map[string][]byte) (store.Facts, error)
	// Reset is as of Fleet, of that store.
	Reset(ctx context.Context, of policy.Store, secret map[string][]byte, scope store.Scope, hash *string) (limiter.Instant, error)
	// Clock returns what a store's clock reads.
	Clock(ctx context.Context, of policy.Store, secret map[string][]byte) (limiter.Instant, error)
}

// Secrets reads the credentials that stores name. It may ask the API server.
type Secrets interface {
	Data(ctx context.Context, of policy.Store) (data map[string][]byte, version string, err error)
}

// Keys finds the public keys of providers of tokens of policies in a namespace. It may ask
// the API server, and nobody else.
type Keys interface {
	Of(ctx context.Context, namespace string, p policy.JWTProvider) (string, error)
}

// named queues the objects that the fleet names.
func named(names <-chan types.NamespacedName) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case name := <-names:
					queue.Add(reconcile.Request{NamespacedName: name})
				}
			}
		}()
		return nil
	})
}

func request(of client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(of)}
}
