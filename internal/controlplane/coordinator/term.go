package coordinator

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/absence"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/bindings"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/births"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/handover"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/journals"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/records"
	pools "github.com/weir-dev/weir/pkg/concurrency/coordinator/memory"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

// A TermStore records the term of leadership. It survives the process.
type TermStore interface {
	// Begin raises the recorded term by at least one and takes out what the
	// predecessor handed over, in one atomic step. leads reports whether this process
	// still leads. It is asked after the record is read and before it is written, so that
	// a process that stood still meanwhile raises no term above its successor's; then
	// the error wraps records.ErrLapsed.
	Begin(ctx context.Context, leads func() bool) (records.Handover, error)

	// End records that a term stopped and what it hands over, unless a later term
	// has begun: then it changes nothing and returns records.ErrFenced.
	End(ctx context.Context, h records.Handover) error

	// Clear deletes what is left of the hand-overs to terms up to this one, which has
	// begun. Parts that it does not reach only cost room, and the next term finds them.
	Clear(ctx context.Context, term uint64) error
}

// A term is everything that lives while one process leads.
type term struct {
	*Coordinator
	number uint64
	log    logr.Logger

	clock          *memory.Clock
	store          *memory.Store
	pools          *pools.Coordinator
	counters       *counters
	births         *births.Births     // nil: none are kept
	journals       *journals.Journals // nil: none are kept
	sessions       *sessions
	accounting     *accounting
	poolAccounting *poolAccounting
	budgets        Budgets
	gateways       Gateways
	bindings       *bindings.Set
	absences       *absence.Tracker
	promises       handover.Promises[*session] // that are made before the term ends
	// roll is held to read while it changes who is counted as a holder of what, and to write
	// while holders are counted.
	roll sync.RWMutex
	// doors is held while a session comes or goes, so that those of one process account one after
	// the other.
	doors    sync.Mutex
	tasks    workqueue.TypedRateLimitingInterface[task]
	configs  configs                  // of the publisher alone
	counts   map[string]*numbers      // the last of each namespace; of the publisher alone
	parting  atomic.Bool              // it grants nothing more, and says good-bye to all
	replicas atomic.Pointer[[]string] // addresses; nil: none were found yet
	fleet    int                      // pods in which a sidecar may have run when the term began
	// crowded are the limits whose values share counters, as last looked at; nil before.
	crowded atomic.Pointer[map[types.NamespacedName][]string]
}

// newTerm takes over what the predecessor left. State that cannot be read is as good as
// lost. A lost ledger costs the windows that are open, and pools have to wait until no share
// of theirs can be in use.
func newTerm(c *Coordinator, begun records.Handover, logger logr.Logger) *term {
	var ledger *memory.Ledger
	clock, past := c.past()
	floor, lost := begun.Stopped, begun.Lost
	if begun.Ledger != nil {
		if ledger, lost = memory.Decode(begun.Ledger); lost == nil {
			floor = max(floor, ledger.Sealed())
		}
	}
	if lost != nil {
		logger.Error(lost, "starting without the predecessor's ledger; open windows grant nothing more")
	}
	clock.Raise(floor) // the lock knew less only if somebody deleted it
	now, first := time.Now(), begun.First && past.Served == 0
	divided := pools.New(pools.Options{Clock: clock.Now, Term: int64(begun.Term), First: first})
	if begun.Pools != nil {
		if err := divided.Import(begun.Pools); err != nil {
			logger.Error(err, "starting without the predecessor's pools; until its shares expired, holders only keep what they use")
		}
	}
	var before *absence.Inheritance
	if begun.Returns != nil {
		var err error
		if before, err = absence.Decode(begun.Returns); err != nil {
			logger.Error(err, "starting without what the predecessor knew of sidecars that were absent; nothing is granted of windows that began before")
			ledger = nil
		}
	}
	tracked := absence.New(clock.Now, first, before)
	options := memory.Options{
		Clock: clock.Now, Ledger: ledger, Overlap: past.Overlap, Absences: tracked.Absences, First: first, Term: begun.Term,
	}
	var durable *journals.Journals
	if c.Journals != nil {
		durable = journals.New(journals.Config{Store: c.Journals, Term: begun.Term, First: first, Clock: clock.Now, Log: logger})
		options.Keep = durable.Keep
	}
	kept := memory.New(options)
	t := &term{
		Coordinator:    c,
		number:         begun.Term,
		log:            logger,
		clock:          clock,
		store:          kept,
		pools:          divided,
		counters:       newCounters(kept, keysIn(debug.SetMemoryLimit(-1))),
		sessions:       newSessions(),
		accounting:     newAccounting(now.Add(figuresTime)),
		poolAccounting: newPoolAccounting(),
		budgets:        noBudgets{},
		gateways:       noGateways{},
		bindings:       bindings.NewSet(),
		absences:       tracked,
		tasks:          workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[task](retryAfter, retryAtMost)),
		configs:        configs{},
		counts:         map[string]*numbers{},
		journals:       durable,
	}
	if c.Gateways != nil {
		t.gateways = c.Gateways()
	}
	if durable != nil {
		served := past.Renewed
		if begun.Stopped > 0 {
			served = begun.Stopped
		}
		durable.Run(served, kept.Begins(), served == 0 && c.Leadership == nil)
	}
	t.accounting.hasPredecessor, t.accounting.remembered = !first, c.Remembered
	if c.Births != nil {
		t.births = births.New(births.Config{Store: c.Births, Clock: clock.Now, Facts: t.factsOf, First: first, Moved: t.store.Close, Created: t.create})
	}
	if c.Budgets != nil {
		t.budgets = c.Budgets(budget.Counts{Usage: t.accounting.usage, Values: t.accounting.values}, func(name types.NamespacedName) { t.budgetNotices.Add(name) }, first)
	}
	return t
}

// create notes that a limit is put in force for the first time.
func (t *term) create(limit store.Scope) {
	t.absences.Create(limit)
	t.accounting.create(limit)
}

// run does what goes on beside the streams until ctx is done, then hands over.
func (t *term) run(ctx context.Context) {
	t.metrics.term.Set(float64(t.number))
	defer t.metrics.term.Set(0)
	t.metrics.clock.Store(t.clock)
	defer t.metrics.clock.Store(nil)
	t.reportForgotten()
	defer t.metrics.forgotten.Reset()
	defer t.metrics.sharing.Reset()
	t.log.Info("leading")

	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { t.clear(background) })
	running.Go(func() { t.publish(background) })
	running.Go(func() { t.audit(background) })
	running.Go(func() { t.sweepRecords(background) })
	running.Go(func() { t.lookForPods(background) })
	running.Go(func() { t.askPromises(background) })
	running.Go(func() { t.watchReplicas(background) })
	running.Go(func() { t.notices.Run(background) })
	running.Go(func() { t.poolNotices.Run(background) })
	running.Go(func() { t.budgetNotices.Run(background) })
	sharing, part := context.WithCancel(background)
	running.Go(func() { t.budgets.Run(sharing) })
	defer running.Wait()
	defer stop()
	<-ctx.Done()
	t.stepDown(part)
}

// stepDown has the holders promise not to go on by themselves, gives back to budgets what was not handed on, says
// goodbye to the holders, grants nothing any more, and hands over.
func (t *term) stepDown(part context.CancelFunc) {
	t.awaitPromises()
	part()
	t.parting.Store(true)
	t.sessions.part("this controller hands over") // before all that takes time: leases wait for the next leader
	t.store.Seal()
	t.pools.Seal()
	if t.journals != nil {
		t.journals.Stop()
	}
	t.end()
}

const (
	// promiseTime is how long a leader that ends waits for promises first, promiseEach how much longer for each
	// holder, and promiseMost how long at most. promiseAgain is how long it waits when it has asked again. All
	// are served meanwhile.
	promiseTime  = 250 * time.Millisecond
	promiseEach  = 400 * time.Microsecond
	promiseMost  = 2 * time.Second
	promiseAgain = time.Second
)

// promiseTimeOf returns how long a leader waits first for the promises of n holders.
func promiseTimeOf(n int) time.Duration {
	return min(promiseTime+time.Duration(n)*promiseEach, promiseMost)
}

// awaitPromises has all holders promise to begin no window by themselves that this leader serves until it has said
// goodbye, and waits for that while all are served: a holder that hears the goodbye late would begin a window
// that was granted to others. They are asked for little first, since a window that they may not begin is lost to
// them if nobody leads, and again where that is not enough.
func (t *term) awaitPromises() {
	for _, wait := range []time.Duration{promiseTimeOf(t.sessions.len()), promiseAgain} {
		// Once promises are over, holders may begin windows: later promises do not undo that.
		if !t.leads() || t.promises.Over(t.clock.Now()) {
			return
		}
		left := t.awaitPromise(wait)
		if left == 0 {
			return
		}
		t.log.Info("sidecars have not promised yet to begin no window on their local shares", "sidecars", left, "waited", wait.String())
	}
}

// awaitPromise does that once. It returns how many have not promised.
func (t *term) awaitPromise(wait time.Duration) (left int) {
	t.promises.Ask(t.clock.Now().Add(limiter.Micros((wait + goodbyeTime) / time.Microsecond)))
	for _, s := range t.sessions.all() {
		t.askLast(s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return t.promises.Wait(ctx)
}

// end records what the successor needs. When that fails, the successor finds what
// it would after a crash.
func (t *term) end() {
	h := records.Handover{Term: t.number, Stopped: t.clock.Now()}
	var err error
	if h.Pools, err = t.pools.Export(records.MaxObject); err != nil { // first: they are small
		t.log.Error(err, "the pools are not handed over; until their shares expired, holders only keep what they use")
	}
	var left []memory.Forgotten
	if h.Returns, err = t.absences.Export(h.Stopped); err != nil {
		t.log.Error(err, "it is not handed over who was absent")
	}
	if h.Ledger, left, err = t.store.Export(records.MaxHandover - len(h.Pools) - len(h.Returns)); err != nil {
		t.log.Error(err, "the ledger is not handed over; open windows grant nothing more")
	}
	for _, f := range left {
		t.log.Info("a policy has too many keys to be handed over; its open windows grant nothing more", "policy", f.Namespace+"/"+f.Policy, "keys", f.Keys)
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if err := t.Terms.End(ctx, h); err != nil {
		t.log.Error(err, "the end of the term is not recorded; the next leader begins as after a crash")
		return
	}
	t.log.Info("handed over", "stopped", h.Stopped, "bytes", len(h.Pools)+len(h.Ledger))
}

// reportForgotten logs and counts the policies that could not be handed over to this term.
func (t *term) reportForgotten() {
	for _, f := range t.store.Forgotten() {
		t.log.Info("a policy had too many keys to be handed over; its windows that are open grant nothing more",
			"policy", f.Namespace+"/"+f.Policy, "keys", f.Keys, "began before", f.Since)
		t.metrics.forgotten.WithLabelValues(f.Namespace, f.Policy).Set(float64(f.Keys))
	}
}

// clear deletes what was handed over to this term.
func (t *term) clear(ctx context.Context) {
	if err := t.Terms.Clear(ctx, t.number); err != nil && ctx.Err() == nil {
		t.log.Error(err, "what was handed over is not deleted; the next leader tries again")
	}
}
