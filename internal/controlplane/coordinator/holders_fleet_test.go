package coordinator

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

var large = flag.Bool("large", false, "have fleets of 2,000 and 5,000 sidecars come back, too")

const (
	// backPerSecond is how many sidecars come back in a second.
	backPerSecond = 50
	// muteTime is how long a new leader that is busy does not answer the leases of some
	// sidecars after they are back, and for how long others are away again.
	muteTime = 8 * time.Second
)

// A member is a sidecar: an engine, and what it knows of the leader.
type member struct {
	id      podauth.Identity
	breaker *twotier.Breaker
	engine  *twotier.Limiter
	policy  policy.Policy
	breaks  bool          // its promises
	late    time.Duration // that its promises take to the leader
	mu      sync.Mutex
	leader  *term
	session *session
	ways    uint64
	lost    time.Time
	mute    time.Time     // until when nothing is answered
	slow    time.Duration // that an answer takes
	broken  chan struct{} // closed when the stream breaks
	// When the stream breaks and the sidecar is back again, zero for never.
	breaksAt, backAt time.Time
}

// askInterval is how often a sidecar is asked for a unit.
const askInterval = 250 * time.Millisecond

// newMember returns a sidecar that the policy applies to, without a leader.
func newMember(t *testing.T, id podauth.Identity, p policy.Policy) *member {
	t.Helper()
	m := &member{id: id, policy: p}
	m.breaker = twotier.NewBreaker(m)
	var err error
	m.engine, err = twotier.New(twotier.Config{
		Scope: store.Scope{Cluster: "test", Namespace: "shop", Policy: p.Name, Limit: "all"}, Params: p.Limits[0].Params(&p),
		Mode: twotier.Leased, Size: twotier.Size{Type: twotier.Fixed, Batch: 5}, MaxKeys: 1, OnUnavailable: twotier.LocalShare,
	}, m.breaker)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// load asks the sidecar until ctx is done, at first after a time.
func (m *member) load(ctx context.Context, phase time.Duration, into *admissions) {
	defer m.engine.Close(context.Background())
	time.Sleep(phase)
	for ctx.Err() == nil {
		if d, err := m.engine.Acquire(ctx, twotier.Request{Cost: 1}); err == nil && d.Allowed {
			into.byWindow[into.window(time.Now())].Add(1)
		}
		time.Sleep(askInterval)
	}
}

// admissions count what a fleet admits by window.
type admissions struct {
	rate     limiter.Rate
	byWindow map[int64]*atomic.Int64
}

// newAdmissions count in the windows of that length that begin within a time.
func newAdmissions(window limiter.Micros, within time.Duration) *admissions {
	a := &admissions{limiter.Rate{Limit: 1, Window: window}, map[int64]*atomic.Int64{}}
	for w := range int64(limiter.Micros(within/time.Microsecond)/window) + 2 {
		a.byWindow[a.window(time.Now())+w] = new(atomic.Int64)
	}
	return a
}

// window returns the one that is open.
func (a *admissions) window(at time.Time) int64 {
	return a.rate.WindowAt(limiter.Instant(at.UnixMicro())).Index
}

// in returns how much was admitted in a window.
func (a *admissions) in(window int64) int64 { return a.byWindow[window].Load() }

// most returns how much was admitted in the window with most.
func (a *admissions) most() (n int64) {
	for _, sum := range a.byWindow {
		n = max(n, sum.Load())
	}
	return n
}

// Connections implements twotier.Reconnecting.
func (m *member) Connections() (uint64, time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ways, m.lost
}

// Moved implements twotier.Reconnecting.
func (*member) Moved(context.Context, uint64) bool { return false }

// Apply implements twotier.Store, by the messages that a sidecar sends.
func (m *member) Apply(ctx context.Context, _ store.Key, _ limiter.Params, c limiter.Command) (limiter.Result, error) {
	m.mu.Lock()
	leader, s, mute, slow, broken := m.leader, m.session, time.Now().Before(m.mute), m.slow, m.broken
	m.mu.Unlock()
	if mute {
		<-ctx.Done()
		return limiter.Result{}, &store.UnavailableError{Store: "the leader", Cause: ctx.Err()}
	}
	if leader == nil {
		return limiter.Result{}, &store.UnavailableError{Store: "the leader", Cause: errors.New("no stream")}
	}
	request := &fleetpb.LeaseRequest{
		Id: 1, Key: &fleetpb.Key{Namespace: m.policy.Namespace, Policy: m.policy.Name, Limit: "all"}, Generation: 1,
		Op: int32(c.Op), Min: c.Min, Want: c.Want, First: c.First, AtMicros: int64(c.At), Windows: windowsTo(c.Windows),
	}
	for _, r := range m.policy.Limits[0].Rates {
		request.Rates = append(request.Rates, rateTo(r))
	}
	limit, err := s.limit(request)
	reply, _ := leader.lease(ctx, limit, err, request)
	if slow > 0 {
		select {
		case <-time.After(slow):
		case <-broken:
			return limiter.Result{}, &store.UnavailableError{Store: "the leader", Cause: errors.New("the stream broke")}
		case <-ctx.Done():
			return limiter.Result{}, &store.UnavailableError{Store: "the leader", Cause: ctx.Err()}
		}
	}
	if reply.GetError() != "" {
		return limiter.Result{}, &store.UnavailableError{Store: "the leader", Cause: errors.New(reply.GetError())}
	}
	res := limiter.Result{
		Granted: reply.GetGranted(), Remaining: reply.GetRemaining(), Limit: reply.GetLimit(), Now: limiter.Instant(reply.GetNowMicros()),
		ExpiresIn: limiter.Micros(reply.GetExpiresInMicros()), RetryAfter: limiter.Micros(reply.GetRetryAfterMicros()),
		ResetAfter: limiter.Micros(reply.GetResetAfterMicros()), Reason: limiter.Reason(reply.GetReason()),
	}
	if len(reply.GetWindows()) > 0 {
		res.Windows, err = windowsFrom(reply.GetWindows())
	}
	return res, err
}

// part has the sidecar lose its stream.
func (m *member) part() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leader, m.lost = nil, time.Now()
	close(m.broken)
}

// silence has the leader not answer the sidecar for a time.
func (m *member) silence(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mute = time.Now().Add(d)
}

// join has the sidecar connect with the number of holders that it was sent.
func (m *member) join(to *term, config *config) {
	m.mu.Lock()
	before := m.session
	m.mu.Unlock()
	hello := &fleetpb.Hello{BootNonce: "1", Promises: true}
	name := types.NamespacedName{Namespace: m.policy.Namespace, Name: m.policy.Name}
	if before != nil && before.shares()[name] > 0 {
		hello.Holders = []*fleetpb.Holders_Count{{Namespace: name.Namespace, Policy: name.Name, Holders: before.shares()[name]}}
	}
	s := newSession(m.id, hello, func(error) {})
	to.sessions.add(s)
	m.mu.Lock()
	m.leader, m.session, m.broken = to, s, make(chan struct{})
	m.ways++
	m.mu.Unlock()
	to.serveBy(s, config, true)
	s.ask(to.absences.Ask(s.Namespace))
	to.arrive(s) // by its first report
	m.hear()
}

// hear has the sidecar do what the leader sent it, unless its stream is broken.
func (m *member) hear() {
	for m.leader != nil && m.session != nil {
		message, ok := m.session.out.Next()
		if !ok {
			return
		}
		for _, count := range message.GetHolders().GetCounts() {
			m.engine.SetHolders(count.GetHolders())
		}
		if r := message.GetPromise(); r != nil {
			m.promise(r)
		}
	}
}

// promise answers the leader.
func (m *member) promise(r *fleetpb.PromiseRequest) {
	var begun limiter.Instant
	if !m.breaks {
		var ok bool
		if begun, ok = m.breaker.Promise(limiter.Instant(r.GetNowMicros()), limiter.Instant(r.GetUntilMicros())); !ok {
			return
		}
	}
	leader, s, p := m.leader, m.session, &fleetpb.Promise{UntilMicros: r.GetUntilMicros(), BegunMicros: int64(begun)}
	if m.late == 0 {
		leader.promised(s, p)
		return
	}
	time.AfterFunc(m.late, func() { leader.promised(s, p) })
}

// TestAFleetThatComesBackKeepsTheLimit: the leader of a large fleet changes, and its sidecars
// need many windows to come back. Each asks for four units a second. The new leader may be
// busy. Then it answers no lease of some that are back for a while, and reads promises of
// others late; some are away again without its knowledge.
func TestAFleetThatComesBackKeepsTheLimit(t *testing.T) {
	sizes := []int{10, 150, 1000}
	switch {
	case underRace:
		sizes = sizes[:1]
	case *large:
		sizes = []int{2000, 5000}
	}
	for _, n := range sizes {
		for _, crash := range []bool{false, true} {
			for _, busy := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d, crash %t, busy %t", n, crash, busy), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						if over := comeBackTogether(t, n, crash, busy, false); over > 0 {
							t.Errorf("a window admitted %d too many", over)
						}
					})
				})
			}
		}
	}
}

// TestAFleetNeedsItsPromises: when sidecars that are back do not keep them, they and the
// leader admit the same shares.
func TestAFleetNeedsItsPromises(t *testing.T) {
	if underRace {
		t.Skip("a fleet too large for the race detector; runs without it")
	}
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("crash %t", crash), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if over := comeBackTogether(t, 150, crash, true, true); over <= 0 {
					t.Errorf("no window admits more, the most %d less than the limit", -over)
				}
			})
		})
	}
}

// comeBackTogether returns by how much the window with most exceeds the limit.
func comeBackTogether(t *testing.T, n int, crash, busy, breaks bool) (over int64) {
	limit, window := int64(n)*20, 10*limiter.Second // each asks for twice its part
	if n > 1000 {
		limit = 20_000
	}
	p := limited("shop", 1, limit, window)
	p.OnStoreUnavailable = policy.LocalShare
	config, err := newConfig(policy.Snapshot{Cluster: "test", Policies: []policy.Policy{p}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids []podauth.Identity
	for i := range n {
		ids = append(ids, pod("shop", fmt.Sprint("web-", i)))
	}
	terms, fleet := &memoryTerms{}, podsOf(ids...)
	begin := func() *term {
		begun, err := terms.Begin(t.Context(), leads)
		if err != nil {
			t.Fatal(err)
		}
		begun.First = begun.Term == 1
		settings := Config{Terms: terms, Resolver: publishing(p)}
		fleet.watched(&settings)
		next := newTerm(New(settings), begun, logr.Discard())
		next.absences.Await(ids)
		return next
	}
	leader := begin()
	defer func() { leader.tasks.ShutDown() }()

	admitted := newAdmissions(window, time.Duration(n/backPerSecond)*time.Second+60*time.Second)
	members := make([]*member, n)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for i, id := range ids {
		m := newMember(t, id, p)
		m.breaks = breaks
		members[i] = m
		m.join(leader, config)
		running.Go(func() { m.load(ctx, time.Duration(i)*askInterval/time.Duration(n), admitted) })
	}
	// listen has the sidecars hear for a time what the leader says to them.
	listen := func(d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second / 5) {
			leader.sendHolders("shop")
			for _, m := range members {
				switch now := time.Now(); {
				case m.leader != nil && !m.breaksAt.IsZero() && now.After(m.breaksAt) && now.Before(m.backAt):
					m.part()
				case m.leader == nil && !m.backAt.IsZero() && now.After(m.backAt):
					m.join(leader, config)
				}
				m.hear()
			}
		}
	}
	listen(13 * time.Second)

	for _, m := range members {
		m.part()
	}
	if crash {
		leader.store.Seal()
	} else {
		leader.stepDownForTest()
	}
	leader.tasks.ShutDown()
	time.Sleep(2 * time.Second)
	leader = begin()
	running.Go(func() { leader.askPromises(ctx) })
	least := int64(n)
	for i, m := range members {
		switch {
		case !busy:
		case i%7 == 3:
			m.silence(muteTime)
		case i%7 == 4:
			m.late = time.Duration(i%45) * time.Second / 10
		case i%7 == 5:
			m.breaksAt, m.backAt = time.Now().Add(time.Second), time.Now().Add(time.Second+muteTime)
		}
		m.join(leader, config)
		if i%(backPerSecond/5) == 0 {
			listen(time.Second / 5)
		}
		m.session.mu.Lock()
		least = min(least, m.session.holders[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}])
		m.session.mu.Unlock()
	}
	listen(25 * time.Second)
	stop()
	running.Wait()
	if least < int64(n) {
		t.Errorf("%d holders know of %d", least, n)
	}
	if got := admitted.in(admitted.window(time.Now()) - 1); got < limit*95/100 {
		t.Errorf("when all were back a window admitted %d of %d", got, limit)
	}
	return admitted.most() - limit
}
