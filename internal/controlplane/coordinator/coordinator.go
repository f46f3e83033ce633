package coordinator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/births"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/connlimit"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/journals"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/notices"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/records"
	"github.com/weir-dev/weir/internal/controlplane/leadership"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

const (
	// ReportInterval is how often holders report.
	ReportInterval = time.Second

	// handshakeTimeout is for TLS, most of it for others' handshakes that go first, and as long again is for the first
	// message of a stream that is authenticated.
	handshakeTimeout = 15 * time.Second
	// authenticateTimeout is how long a stream may wait for its turn and be reviewed. A
	// sidecar waits 20 s for its welcome. Waiting streams are bounded: a pod has one.
	authenticateTimeout = 18 * time.Second

	// silenceTimeout is after how long a holder that sends nothing is lost, and one that waited and
	// says no hello. Either side may be short of processors for a while. Less than this would end streams
	// that are well, and have them come back while there is most to do.
	silenceTimeout = 20 * time.Second
	stallTimeout   = 5 * time.Second // a holder may take to read what it asked for
	endTimeout     = 5 * time.Second // to record the end of a term
	partTimeout    = 2 * time.Second // for sessions to end when the leader steps down
	beginRetry     = time.Second
	maxNonce       = 64       // bytes
	receiveWindow  = 64 << 10 // bytes of one connection that may wait to be handled
	// connectionBuffer is how many bytes are written to a connection at a time.
	connectionBuffer = 4 << 10
)

// A Resolver returns what a pod has to enforce. An error, for instance because its
// sources are not known completely yet, means that nothing is sent: the pod keeps
// what it has. A *translate.PartialError comes with all that can be enforced: it is
// sent to pods that lose nothing by it, and others that were sent nothing are served by it.
type Resolver interface {
	// Namespace reads what the pods of a namespace may enforce, and returns a function
	// that resolves one of them from that. Pods that enforce the same share the snapshot,
	// which is not to be changed.
	Namespace(ctx context.Context, namespace string) (func(ctx context.Context, pod, podUID string) (*policy.Snapshot, error), error)
	// Secret returns the values of the credentials that a store of a snapshot names,
	// in the version that the snapshot names or a later one.
	Secret(ctx context.Context, s policy.Store) (map[string][]byte, error)
}

// Leadership is what the lock of leader election knows.
type Leadership interface {
	// Held reports whether this process is certain to lead still. A process that was
	// suspended may believe so for too long.
	Held() bool
	// Covers reports whether Held is true and no later leader serves the instant, which
	// is one of Clock.
	Covers(at limiter.Instant) bool
	// Clock returns the clock by which the process serves while it leads. It starts after
	// all that is known to have been served.
	Clock() *memory.Clock
	// Past returns what is known of the leaders before.
	Past() leadership.Past
}

// Config is what a Coordinator works with.
type Config struct {
	Address       string      // host:port to listen on
	TLS           *tls.Config // with a certificate; TLS 1.3 is required whatever it says
	Authenticator podauth.Authenticator
	Resolver      Resolver
	Terms         TermStore
	Leadership    Leadership            // nil: leadership is held until Start's context is done
	Registerer    prometheus.Registerer // nil: metrics are not exposed
	// Budgets returns, for one term, what hands on this cluster's parts of the budgets that
	// it shares with others. counts are what sidecars counted; changed is
	// called with each FederatedBudget that changed, and does not block; first says that
	// nobody led before. Nil: the cluster shares none.
	Budgets func(counts budget.Counts, changed func(types.NamespacedName), first bool) Budgets
	// Births keep when limits were first put in force, Facts asks a store other than the
	// controller's own about itself, and Limits returns all limits that exist. Births nil:
	// no limit is known to be new.
	Births births.Store
	Facts  func(ctx context.Context, of policy.Store) (store.Facts, error)
	Limits func(context.Context) (map[store.Scope]struct{}, error)
	// Reached returns what is known of the clock of a store other than the controller's own.
	// It does not block. Nil: nothing ever is.
	Reached func(of policy.Store) store.Reached
	// Remembered returns in which spans a store other than the controller's own surely kept
	// its memory of durable counters, as far as it was asked. It does not block. Nil: it is
	// never known.
	Remembered func(of policy.Store) []audit.Unbroken
	// Journals keep what is set aside of durable counters in the controller's own store. Nil:
	// none survive a leader that did not hand over.
	Journals journals.Store
	// Gateways returns, for one term, what asks the stores that sidecars reach through this
	// controller. Nil: none is reached.
	Gateways func() Gateways
	// Pods returns the pods of a namespace, or of all for "", in which a sidecar may run.
	// They are all that CatchUp has caught up with. Nil: no pod outlives the stream of its
	// sidecar.
	Pods func(ctx context.Context, namespace string) ([]podauth.Identity, error)
	// CatchUp returns once the Resolver knows all that leaders before have written;
	// nil when it always does; so does Pods. Nobody is served before.
	CatchUp func(context.Context) error
	// Replicas returns the addresses, host:port, of other replicas, at which sidecars may wait
	// until these lead. Nil: none are known.
	Replicas func(context.Context) ([]string, error)
	// Elected is closed when this process leads. Nil: it does from the start.
	Elected <-chan struct{}
}

// A Coordinator serves the fleet stream while its process leads. Before, it has sidecars
// wait. Its methods are
// safe for concurrent use.
type Coordinator struct {
	Config
	metrics         *metrics
	notices         *notices.Notices // of policies
	poolNotices     *notices.Notices
	budgetNotices   *notices.Notices
	waiting         *waiting
	refusals        *connlimit.Refusals
	streams         *streams
	crew            *crew
	heard           heards
	unauthenticated int                  // connections without an authenticated stream that there is room for
	present         atomic.Pointer[term] // nil while this process does not lead
	ends            []func()             // what Close does, the last one first
	listen          func(ctx context.Context, address string) (net.Listener, error)
}

// New returns a Coordinator that does nothing until Start.
func New(config Config) *Coordinator {
	waits, heap := newWaiting(), debug.SetMemoryLimit(-1)
	room := newStreams(connlimit.PodsIn(heap))
	m := newMetrics(config.Registerer, func() float64 { return float64(waits.len()) }, room.taken)
	refusals := connlimit.NewRefusals(m.refusals)
	room.refusals = refusals
	c := &Coordinator{
		Config:          config,
		metrics:         m,
		refusals:        refusals,
		streams:         room,
		crew:            newCrew(),
		unauthenticated: connlimit.ConnectionsIn(heap),
		notices:         notices.New(),
		poolNotices:     notices.New(),
		budgetNotices:   notices.New(),
		waiting:         waits,
		listen: func(ctx context.Context, address string) (net.Listener, error) {
			return new(net.ListenConfig).Listen(ctx, "tcp", address)
		},
	}
	m.room.WithLabelValues("connections").Set(float64(c.unauthenticated))
	m.room.WithLabelValues("pods").Set(float64(c.streams.room()))
	if config.Registerer != nil {
		config.Registerer.MustRegister(versions{c})
	}
	return c
}

// NeedLeaderElection reports that every replica takes streams, see Config.Elected.
func (*Coordinator) NeedLeaderElection() bool { return false }

// Start has sidecars wait until this process is elected, and then leads one term. It
// returns when ctx is done and the ledger is handed over, so the lock of leader election
// may be released afterwards. Streams may be open still, over which nothing is granted: Close
// ends them. The next leader does not wait for that.
func (c *Coordinator) Start(ctx context.Context) error {
	listener, err := c.listen(ctx, c.Address)
	if err != nil {
		return fmt.Errorf("listen for sidecars: %w", err)
	}
	c.refusals.LogTo(log.FromContext(ctx).WithName("coordinator"))
	limited := connlimit.NewListener(listener, c.unauthenticated, c.refusals, c.metrics.connections)
	server := c.newServer(limited)
	c.ends = append(c.ends, c.crew.stop, func() { stopServer(server) })
	defer c.waiting.stop()
	serving, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go func() {
		if err := server.Serve(limited); err != nil {
			fail(fmt.Errorf("serve sidecars: %w", err))
		}
	}()
	if c.Elected != nil {
		select {
		case <-c.Elected:
		case <-serving.Done():
		}
	}
	if serving.Err() == nil {
		c.lead(serving)
	}
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(serving)
}

// Close ends what is left when Start has returned. It blocks until all streams have ended, for
// a few seconds at most. To call it again does nothing.
func (c *Coordinator) Close() {
	for _, end := range slices.Backward(c.ends) {
		end()
	}
	c.ends = nil
}

// lead leads one term, until ctx is done.
func (c *Coordinator) lead(ctx context.Context) {
	begun, pods, err := c.begin(ctx)
	if err != nil {
		return // stopped before the term began: nothing to hand over
	}
	t := newTerm(c, begun, log.FromContext(ctx).WithName("coordinator").WithValues("term", begun.Term))
	defer t.tasks.ShutDown()
	t.absences.Await(pods)
	t.fleet = len(pods)
	c.present.Store(t)
	c.ends = append(c.ends, func() { c.present.Store(nil) }, t.gateways.Close, t.sessions.drain)
	c.waiting.lead(t.number)
	t.run(ctx)
}

// begin catches up with leaders before and raises the term; it tries until it
// succeeds or ctx is done.
func (c *Coordinator) begin(ctx context.Context) (begun records.Handover, pods []podauth.Identity, err error) {
	err = wait.PollUntilContextCancel(ctx, beginRetry, true, func(ctx context.Context) (bool, error) {
		var failed error
		if c.CatchUp != nil {
			failed = c.CatchUp(ctx)
		}
		if failed == nil {
			pods, failed = c.pods(ctx, "")
		}
		if failed == nil {
			begun, failed = c.Terms.Begin(ctx, c.leads)
		}
		if failed != nil {
			log.FromContext(ctx).Error(failed, "cannot begin a term; trying again")
		}
		return failed == nil, nil
	})
	return begun, pods, err
}

// pods returns those in which a sidecar may run.
func (c *Coordinator) pods(ctx context.Context, namespace string) ([]podauth.Identity, error) {
	if c.Pods == nil {
		return nil, nil
	}
	return c.Pods(ctx, namespace)
}

// Refresh sends every sidecar of the namespace what it has to enforce now, if
// that is not what it was sent last. It does not wait for that.
func (c *Coordinator) Refresh(namespace string) {
	if t := c.present.Load(); t != nil {
		t.tasks.Add(task{namespace: namespace})
	}
}

// Changed names policies with a change that a condition depends on.
// Names may be repeated. The channel is never closed; it has one reader.
func (c *Coordinator) Changed() <-chan types.NamespacedName { return c.notices.Out() }

// PoolsChanged names pools with a change that a condition depends on,
// as Changed does policies.
func (c *Coordinator) PoolsChanged() <-chan types.NamespacedName { return c.poolNotices.Out() }

// BudgetsChanged names FederatedBudgets with a change that a condition
// depends on, as Changed does policies.
func (c *Coordinator) BudgetsChanged() <-chan types.NamespacedName { return c.budgetNotices.Out() }

// Now returns the time of the controller's own store, and false while this process
// does not lead.
func (c *Coordinator) Now() (limiter.Instant, bool) {
	t := c.present.Load()
	if t == nil || !c.leads() {
		return 0, false
	}
	return t.clock.Now(), true
}

// leads reports whether this process is certain to lead.
func (c *Coordinator) leads() bool { return c.Leadership == nil || c.Leadership.Held() }

// covers reports whether this process is certain to lead, and no later leader serves the
// instant of its clock.
func (c *Coordinator) covers(at limiter.Instant) bool {
	return c.Leadership == nil || c.Leadership.Covers(at)
}

// past returns the clock to serve by and what is known of the leaders before.
func (c *Coordinator) past() (*memory.Clock, leadership.Past) {
	if c.Leadership == nil {
		return memory.NewClock(time.Now(), 0), leadership.Past{}
	}
	return c.Leadership.Clock(), c.Leadership.Past()
}

// Reset sets all counters of a limit back in this controller's store, or the one of hash
// when it is not nil, and returns when that was, on the store's clock. After an error some
// may be set back.
func (c *Coordinator) Reset(ctx context.Context, scope store.Scope, hash *string) (limiter.Instant, error) {
	t := c.present.Load()
	if t == nil {
		return 0, errors.New("this controller does not lead")
	}
	if _, err := t.store.Reset(ctx, scope, hash); err != nil {
		return 0, err
	}
	at := t.clock.Now()
	if !t.covers(at) {
		return 0, unavailable("term %d may have ended", t.number)
	}
	return at, nil
}
