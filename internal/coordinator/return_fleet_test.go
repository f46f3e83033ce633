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

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

var large = flag.Bool("large", false, "have fleets of 2,000 and 5,000 sidecars come back, too")

// backPerSecond is how many sidecars come back in a second.
const backPerSecond = 50

// A member is a sidecar: an engine, and what it knows of the leader.
type member struct {
	id      Identity
	engine  *twotier.Limiter
	policy  policy.Policy
	mu      sync.Mutex
	leader  *term
	session *session
	ways    uint64
	lost    time.Time
}

// Ways implements twotier.Reconnecting.
func (m *member) Ways() (uint64, time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ways, m.lost
}

// Moved implements twotier.Reconnecting.
func (*member) Moved(context.Context, uint64) bool { return false }

// Apply implements twotier.Store, by the messages that a sidecar sends.
func (m *member) Apply(ctx context.Context, _ store.Key, _ limiter.Params, c limiter.Command) (limiter.Result, error) {
	m.mu.Lock()
	leader, s := m.leader, m.session
	m.mu.Unlock()
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
	reply := leader.lease(ctx, limit, err, request)
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
}

// join has the sidecar connect with the holders that it was told.
func (m *member) join(to *term, config *config) {
	m.mu.Lock()
	before := m.session
	m.mu.Unlock()
	hello := &fleetpb.Hello{BootNonce: "1"}
	name := types.NamespacedName{Namespace: m.policy.Namespace, Name: m.policy.Name}
	if before != nil && before.shares()[name] > 0 {
		hello.Holders = []*fleetpb.Holders_Count{{Namespace: name.Namespace, Policy: name.Name, Holders: before.shares()[name]}}
	}
	s := newSession(m.id, hello, func(error) {})
	to.sessions.add(s)
	m.mu.Lock()
	m.leader, m.session = to, s
	m.ways++
	m.mu.Unlock()
	to.serveBy(s, config, true)
	to.arrive(s) // by its first report
}

// hear has the sidecars do what the leader told them.
func hear(members []*member) {
	for _, m := range members {
		if s := m.session; s != nil {
			for len(s.queue) > 0 {
				for _, count := range (<-s.queue).GetHolders().GetCounts() {
					m.engine.SetHolders(count.GetHolders())
				}
			}
		}
	}
}

// TestAFleetThatComesBackKeepsTheLimit: the leader of a large fleet changes, and its sidecars
// need many windows to come back. Each asks for four units a second.
func TestAFleetThatComesBackKeepsTheLimit(t *testing.T) {
	sizes := []int{1000}
	if *large {
		sizes = []int{2000, 5000}
	}
	for _, n := range sizes {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d, crash %t", n, crash), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { comeBackTogether(t, n, crash) })
			})
		}
	}
}

func comeBackTogether(t *testing.T, n int, crash bool) {
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
	var ids []Identity
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
		next.returns.await(ids)
		return next
	}
	leader := begin()
	defer func() { leader.tasks.ShutDown() }()

	admitted := map[int64]*atomic.Int64{}
	until := time.Duration(n/backPerSecond)*time.Second + 60*time.Second
	began := time.Now()
	for w := range int64(until/(10*time.Second)) + 2 {
		admitted[limiter.Rate{Limit: 1, Window: window}.WindowAt(limiter.Instant(began.UnixMicro())).Index+w] = new(atomic.Int64)
	}
	members := make([]*member, n)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for i, id := range ids {
		m := &member{id: id, policy: p}
		m.engine = twotier.New(twotier.Config{
			Scope: store.Scope{Cluster: "test", Namespace: "shop", Policy: p.Name, Limit: "all"}, Params: p.Limits[0].Params(&p),
			Mode: twotier.Leased, Size: twotier.Size{Type: twotier.Fixed, Batch: 5}, MaxKeys: 1, OnUnavailable: twotier.LocalShare,
		}, m)
		members[i] = m
		m.join(leader, config)
		running.Go(func() {
			defer m.engine.Close(context.Background())
			time.Sleep(time.Duration(i) * 250 * time.Millisecond / time.Duration(n))
			for ctx.Err() == nil {
				d, err := m.engine.Acquire(ctx, twotier.Request{Cost: 1})
				if err == nil && d.Allowed {
					admitted[limiter.Rate{Limit: 1, Window: window}.WindowAt(limiter.Instant(time.Now().UnixMicro())).Index].Add(1)
				}
				time.Sleep(250 * time.Millisecond)
			}
		})
	}
	tell := func() {
		leader.sendHolders("shop")
		hear(members)
	}
	tell()
	time.Sleep(13 * time.Second)

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
	least := int64(n)
	for i, m := range members {
		m.join(leader, config)
		if i%(backPerSecond/5) == 0 {
			tell()
			time.Sleep(time.Second / 5)
		}
		m.session.mu.Lock()
		least = min(least, m.session.told[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}])
		m.session.mu.Unlock()
	}
	time.Sleep(25 * time.Second)
	stop()
	running.Wait()
	if least < int64(n) {
		t.Errorf("%d holders were told of %d", least, n)
	}
	for index, sum := range admitted {
		if got := sum.Load(); got > limit {
			t.Errorf("window %d admitted %d of %d", index, got, limit)
		}
	}
	last := limiter.Rate{Limit: 1, Window: window}.WindowAt(limiter.Instant(time.Now().UnixMicro())).Index - 1
	if got := admitted[last].Load(); got < limit*95/100 {
		t.Errorf("when all were back a window admitted %d of %d", got, limit)
	}
}
