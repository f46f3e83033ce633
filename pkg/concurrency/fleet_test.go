package concurrency

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
	"github.com/weir-dev/weir/pkg/concurrency/coordinator/memory"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
	"github.com/weir-dev/weir/pkg/store"
)

// A backend counts what it has in flight.
type backend struct {
	mu       sync.Mutex
	limit    int64
	inFlight int64
	worst    int64
	recent   int64     // since restart
	over     time.Time // when it first had more than the limit
}

func (b *backend) enter() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight++
	b.worst, b.recent = max(b.worst, b.inFlight), max(b.recent, b.inFlight)
	if b.inFlight > b.limit && b.over.IsZero() {
		b.over = time.Now()
	}
}

func (b *backend) leave(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight -= n
}

// A world is a fleet of holders before one backend, with everything that may go wrong.
type world struct {
	rng      *rand.Rand // guarded by mu
	mu       sync.Mutex
	leader   *memory.Coordinator // guarded by mu
	term     int64
	alone    bool        // without a pool: everybody is its own coordinator
	calm     atomic.Bool // nothing goes wrong
	config   Config
	longest  time.Duration // of a request
	backend  *backend
	holders  []*member
	joined   int
	clients  sync.WaitGroup
	messages sync.WaitGroup
}

// A member is one process of the fleet.
type member struct {
	w     *world
	guard *Guard
	clock *monotonic.Clock
	own   *memory.Coordinator
	gone  context.Context //nolint:containedctx // of the process: done when it was killed or closed
	stop  context.CancelFunc

	mu       sync.Mutex // guards the rest
	inFlight int64      // at the backend
	dead     bool
	cut      time.Time // until when nothing gets through
	frozen   chan struct{}
}

// below returns a random number in [0, n).
func (w *world) below(n int64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.Int64N(max(1, n))
}

// chance reports true once in n times.
func (w *world) chance(n int64) bool { return w.below(n) == 0 }

// delay returns a random duration below d.
func (w *world) delay(d time.Duration) time.Duration { return time.Duration(w.below(int64(d))) }

// join starts a process with as many clients as the limit.
func (w *world) join() {
	w.joined++
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{w: w, clock: new(monotonic.Clock), gone: ctx, stop: cancel, frozen: make(chan struct{})}
	close(m.frozen)
	if w.alone {
		m.own = remember()
	}
	cfg := w.config
	cfg.Holder = fmt.Sprintf("holder-%d", w.joined)
	m.guard = newGuard(cfg, m, m.clock)
	w.holders = append(w.holders, m)
	for range w.backend.limit {
		w.clients.Go(m.client)
	}
}

// thaw waits while the process does not run.
func (m *member) thaw() {
	for {
		m.mu.Lock()
		frozen := m.frozen
		m.mu.Unlock()
		select {
		case <-frozen:
			return
		default:
			<-frozen
		}
	}
}

// client sends one request after the other.
func (m *member) client() {
	w := m.w
	for m.gone.Err() == nil {
		time.Sleep(w.delay(20 * time.Millisecond))
		m.thaw()
		slot, verdict := m.guard.Acquire(m.gone, Request{Partition: int(w.below(2))})
		if verdict != Admitted {
			continue
		}
		if m.enter() {
			m.serve(slot)
			m.exit()
		}
		m.thaw()
		slot.Release(Outcome(w.below(3)))
	}
}

// serve is one request at the backend.
func (m *member) serve(slot Slot) {
	select {
	case <-time.After(1 + m.w.delay(m.w.longest)):
	case <-slot.Fenced():
	}
}

func (m *member) enter() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return false
	}
	m.inFlight++
	m.w.backend.enter()
	return true
}

func (m *member) exit() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dead {
		m.inFlight--
		m.w.backend.leave(1)
	}
}

// Apply implements Coordinator: it sends a command over a network that delays, loses,
// repeats and reorders.
func (m *member) Apply(ctx context.Context, key pool.Key, p pool.Params, c pool.Command) (pool.Grant, error) {
	w := m.w
	if w.alone {
		return m.own.Apply(ctx, key, p, c)
	}
	answer := make(chan func() (pool.Grant, error), 2)
	for range w.copies() {
		w.messages.Go(func() { m.travel(key, p, c, answer) })
	}
	if w.calm.Load() || !w.chance(5) {
		select {
		case f := <-answer:
			return f()
		case <-ctx.Done():
			return pool.Grant{}, &store.UnavailableError{Store: "test", Cause: ctx.Err()}
		}
	}
	select { // a client that does not look at its context
	case f := <-answer:
		return f()
	case <-time.After(3 * time.Second):
		return pool.Grant{}, &store.UnavailableError{Store: "test", Cause: context.DeadlineExceeded}
	}
}

// copies returns how often a message arrives.
func (w *world) copies() int {
	if w.calm.Load() {
		return 1
	}
	switch w.below(10) {
	case 0:
		return 0
	case 1:
		return 2
	default:
		return 1
	}
}

// travel takes a command to the coordinator and the answer back.
func (m *member) travel(key pool.Key, p pool.Params, c pool.Command, answer chan<- func() (pool.Grant, error)) {
	m.cross()
	m.w.mu.Lock()
	leader := m.w.leader
	m.w.mu.Unlock()
	if m.lost() {
		return
	}
	g, err := leader.Apply(context.Background(), key, p, c)
	m.cross()
	if !m.lost() {
		answer <- func() (pool.Grant, error) { return g, err }
	}
}

// cross is how long a message is on the way. Messages from or to a process that does
// not run wait.
func (m *member) cross() {
	w := m.w
	d := w.delay(5 * time.Millisecond)
	if !w.calm.Load() && w.chance(8) {
		d = w.delay(2 * time.Second)
	}
	time.Sleep(d)
	m.thaw()
}

// lost reports whether a message gets lost: it does on a link that is cut.
func (m *member) lost() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Before(m.cut)
}

// die ends a process with all it has in flight.
func (m *member) die() {
	m.stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
	m.w.backend.leave(m.inFlight)
	m.inFlight = 0
}

// leave ends a process in good order, as far as it gets with that in the time.
func (m *member) leave(within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	m.stop()
	m.guard.Close(ctx)
	m.die()
}

// stopFor stops a process for a while. Requests that it forwarded go on. On a machine
// that is suspended the clock stands still, too; it never goes on by more.
func (m *member) stopFor(d time.Duration, suspended bool) {
	m.mu.Lock()
	frozen := make(chan struct{})
	m.frozen = frozen
	m.mu.Unlock()
	if suspended {
		m.clock.Skip(-d)
	}
	m.w.messages.Go(func() {
		time.Sleep(d)
		if suspended {
			m.clock.Skip(d)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		close(frozen)
	})
}

// stopped reports whether the process does not run.
func (m *member) stopped() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.frozen:
		return false
	default:
		return true
	}
}

// strike lets one thing go wrong.
func (w *world) strike() {
	i := int(w.below(int64(len(w.holders))))
	m := w.holders[i]
	if m.stopped() {
		return
	}
	misfortunes := int64(7)
	if w.config.OnFenced == Abort {
		misfortunes = 5 // a process that does not run ends no request
	}
	switch w.below(misfortunes) {
	case 0: // killed
		m.die()
		m.guard.Close(m.gone)
		w.remove(i)
	case 1: // ends in good order
		m.leave(w.delay(time.Second))
		w.remove(i)
	case 2: // one more
		if len(w.holders) < 6 {
			w.join()
		}
	case 3: // cut off
		m.mu.Lock()
		m.cut = time.Now().Add(w.delay(6 * time.Second))
		m.mu.Unlock()
	case 4: // the leader dies, and the next one knows nothing
		w.mu.Lock()
		defer w.mu.Unlock()
		w.leader.Seal()
		w.term++
		w.leader = memory.New(memory.Options{Clock: watch(0), Term: w.term})
	case 5: // SIGSTOP
		m.stopFor(w.delay(6*time.Second), false)
	case 6: // suspended
		m.stopFor(w.delay(6*time.Second), true)
	}
}

// remove forgets a process that ended. At least two are there.
func (w *world) remove(i int) {
	w.holders = append(w.holders[:i], w.holders[i+1:]...)
	if len(w.holders) < 2 {
		w.join()
	}
}

// heal waits until everybody runs and gets through.
func (w *world) heal() {
	w.calm.Store(true)
	time.Sleep(8 * time.Second)
}

// live runs the fleet for that long, lets it recover, and returns what the backend had
// in flight at most after that.
func (w *world) live(holders int, d time.Duration) (after int64) {
	for range holders {
		w.join()
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(1 + w.delay(800*time.Millisecond))
		if !w.calm.Load() {
			w.strike()
		}
	}
	w.heal()
	w.backend.restart()
	time.Sleep(3 * time.Second)
	after = w.backend.restart()
	for _, m := range w.holders {
		m.leave(10 * time.Second)
	}
	w.clients.Wait()
	w.messages.Wait()
	return after
}

// restart returns the most in flight since it was called last.
func (b *backend) restart() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	recent := b.recent
	b.recent = b.inFlight
	return recent
}

// chaos returns a world drawn at random.
func chaos(seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	cfg := fixed("", 1+rng.Int64N(12))
	cfg.Heartbeat.Eager = rng.IntN(2) == 0
	cfg.Params.Allocation = pool.Allocation(rng.IntN(2))
	cfg.OnFenced = FenceAction(rng.IntN(2))
	if rng.IntN(2) == 0 {
		cfg.Slots.Queue = slots.Queue{MaxLength: 1 + rng.IntN(8), MaxWait: limiter.Micros(1 + rng.IntN(3_000_000))}
	}
	if rng.IntN(2) == 0 {
		cfg.Slots.Partitions = []slots.Partition{{Name: "kept", GuaranteedPercent: rng.IntN(101)}}
	}
	if rng.IntN(3) == 0 { // long ago at the next beat
		cfg.Params.TTL, cfg.Params.Quarantine = 5*limiter.Second, 5*limiter.Second
		cfg.Margin = 2 * time.Second
	}
	if rng.IntN(4) == 0 { // the limit follows latency
		cfg.Params.Min, cfg.Law = 1, adaptive.Config{
			Algorithm: adaptive.AIMD, Min: 1, Max: cfg.Params.Max, Initial: cfg.Params.Max, Tolerance: 2, Backoff: 0.5,
			Baseline: adaptive.Baseline{Type: adaptive.Rolling, Samples: 100},
		}
	}
	longest := cfg.Margin
	if cfg.OnFenced == Abort {
		longest *= 6
	}
	return &world{
		rng: rng, leader: remember(), term: 1, config: cfg, longest: longest,
		backend: &backend{limit: cfg.Params.Max},
	}
}

// TestFleetNeverExceedsItsLimit counts at the backend itself, at every instant, while
// messages are delayed, lost, repeated and reordered, holders are killed, stopped, cut
// off and suspended, and leaders forget.
func TestFleetNeverExceedsItsLimit(t *testing.T) {
	for seed := range uint64(240) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := chaos(seed)
				began := time.Now()
				after := w.live(2+int(w.below(4)), 25*time.Second)
				b := w.backend
				if b.worst > b.limit {
					t.Errorf("%d were in flight below a limit of %d, after %v; %+v", b.worst, b.limit, b.over.Sub(began), w.config)
				}
				if after < b.limit && len(w.config.Slots.Partitions) == 0 && w.config.Law.Algorithm == adaptive.Fixed {
					t.Errorf("a fleet left in peace had %d in flight of a limit of %d; %+v", after, b.limit, w.config)
				}
			})
		})
	}
}

// TestFleetWithoutAPoolOverloadsItsBackend is the same load, with no coordinator.
func TestFleetWithoutAPoolOverloadsItsBackend(t *testing.T) {
	for _, holders := range []int{2, 4, 8} {
		t.Run(fmt.Sprintf("%d holders", holders), func(t *testing.T) {
			for _, alone := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					w := chaos(0)
					w.config = fixed("", 8)
					w.backend.limit, w.longest = 8, 500*time.Millisecond
					w.alone = alone
					w.calm.Store(true)
					w.live(holders, 5*time.Second)
					want := w.backend.limit
					if alone {
						want *= int64(holders)
					}
					if w.backend.worst != want {
						t.Errorf("alone %v: at most %d in flight, want %d", alone, w.backend.worst, want)
					}
				})
			}
		})
	}
}
