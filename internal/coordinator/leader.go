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

	"github.com/weir-dev/weir/internal/fleetpb"
	pools "github.com/weir-dev/weir/pkg/concurrency/coordinator/memory"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

// A term is everything that lives while one process leads.
type term struct {
	*Coordinator
	number uint64
	log    logr.Logger

	clock     *memory.Clock
	store     *memory.Store
	pools     *pools.Coordinator
	counters  *counters
	births    *births   // nil: none are kept
	journals  *journals // nil: none are kept
	sessions  *sessions
	books     *books
	poolBooks *poolBooks
	budgets   Budgets
	draws     *draws
	returns   *returns
	tasks     workqueue.TypedRateLimitingInterface[task]
	configs   configs                          // of the publisher alone
	parting   atomic.Bool                      // it grants nothing more, and says good-bye to all
	replicas  atomic.Pointer[fleetpb.ToHolder] // nil: none were found yet
	// crowded are the limits whose values share a counter, as last looked at; nil before.
	crowded atomic.Pointer[map[types.NamespacedName][]string]
}

// newTerm takes over what the predecessor left. State that cannot be read is as good as
// lost. A lost ledger costs the windows that are open, and pools have to wait until no share
// of theirs can be in use.
func newTerm(c *Coordinator, begun Handover, logger logr.Logger) *term {
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
	var before *inheritance
	if begun.Returns != nil {
		var err error
		if before, err = inheritedFrom(begun.Returns); err != nil {
			logger.Error(err, "starting without what the predecessor knew of sidecars that were absent; nothing is granted of windows that began before")
			ledger = nil
		}
	}
	absent := newReturns(clock.Now, first, before)
	options := memory.Options{
		Clock: clock.Now, Ledger: ledger, Overlap: past.Overlap, Absences: absent.absences, First: first, Term: begun.Term,
	}
	var records *journals
	if c.Journals != nil {
		records = newJournals(c.Journals)
		records.first = first
		options.Keep = records.keep
	}
	kept := memory.New(options)
	t := &term{
		Coordinator: c,
		number:      begun.Term,
		log:         logger,
		clock:       clock,
		store:       kept,
		pools:       divided,
		counters:    newCounters(kept, keysIn(debug.SetMemoryLimit(-1))),
		sessions:    newSessions(),
		books:       newBooks(now.Add(figuresTime)),
		poolBooks:   newPoolBooks(),
		budgets:     noBudgets{},
		draws:       newDraws(),
		returns:     absent,
		tasks:       workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[task](retryAfter, retryAtMost)),
		configs:     configs{},
		journals:    records,
	}
	if records != nil {
		served := past.Renewed
		if begun.Stopped > 0 {
			served = begun.Stopped
		}
		records.run(t, served)
	}
	t.books.heir, t.books.remembered = !first, c.Remembered
	if c.Births != nil {
		t.births = &births{store: c.Births, clock: clock.Now, facts: t.factsOf, first: first, moved: t.store.Close, created: t.create}
	}
	if c.Budgets != nil {
		t.budgets = c.Budgets(t.books.usage, func(name types.NamespacedName) { t.budgetNotices.add(name) }, first)
	}
	return t
}

// create notes that a limit is put in force for the first time.
func (t *term) create(limit store.Scope) {
	t.returns.create(limit)
	t.books.create(limit)
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
	running.Go(func() { t.sweepBirths(background) })
	running.Go(func() { t.lookForPods(background) })
	running.Go(func() { t.askPromises(background) })
	running.Go(func() { t.watchReplicas(background) })
	running.Go(func() { t.notices.run(background) })
	running.Go(func() { t.poolNotices.run(background) })
	running.Go(func() { t.budgetNotices.run(background) })
	sharing, part := context.WithCancel(background)
	running.Go(func() { t.budgets.Run(sharing) })
	defer running.Wait()
	defer stop()
	<-ctx.Done()
	t.stepDown(part)
}

// stepDown grants nothing any more, gives back to budgets what was not handed on, says so
// to the holders, hands over, and ends every session.
func (t *term) stepDown(part context.CancelFunc) {
	part()
	t.parting.Store(true)
	t.store.Seal()
	t.pools.Seal()
	t.sessions.part("this controller hands over") // before all that takes time: leases wait for the next leader
	if t.journals != nil {
		t.journals.stop()
	}
	t.end()
	t.sessions.drain()
}
