package coordinator

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/records"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// authenticationTime is how long a replica takes to authenticate all sidecars of a fleet:
// 1,000 a second of 5,000.
const authenticationTime = 5 * time.Second

// paced is an Authenticator that takes its time, one token after the other.
type paced struct {
	tokens
	turn chan struct{}
	each time.Duration
}

func (p paced) Authenticate(ctx context.Context, token string) (podauth.Identity, error) {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	time.Sleep(p.each)
	return p.tokens.Authenticate(ctx, token)
}

// A site is where sidecars find replicas: by their own addresses, and the leader by that of
// the Service.
type site struct {
	asked    atomic.Int64 // how often sidecars looked for the leader
	mu       sync.Mutex
	leads    *leader
	replicas map[string]*leader
}

// newSite returns one with two replicas, which a channel each elects, and the pods of n sidecars
// that a replica takes authenticationTime to authenticate.
func newSite(t *testing.T, p policy.Policy, n int) (s *site, replicas [2]*leader, elected [2]chan struct{}, ids []podauth.Identity) {
	for i := range n {
		ids = append(ids, pod("shop", fmt.Sprint("web-", i)))
	}
	s = &site{replicas: map[string]*leader{}}
	terms, pods, addresses := &memoryTerms{left: records.Handover{First: true}}, podsOf(ids...), []string{"10.0.0.1:1", "10.0.0.2:1"}
	for i, address := range addresses {
		replicas[i], elected[i] = standBy(t, terms, publishing(p), pods.watched, func(c *Config) {
			c.Authenticator = paced{turn: make(chan struct{}, 1), each: authenticationTime / time.Duration(n)}
			c.Replicas = func(context.Context) ([]string, error) { return addresses[1-i : 2-i], nil }
		})
		s.replicas[address] = replicas[i]
	}
	close(elected[0])
	s.lead(replicas[0])
	return s, replicas, elected, ids
}

// A slowness is that of a machine on which each write takes its time, one after the other where there is a
// turn. It begins when from says so, nil for at once.
type slowness struct {
	turn chan struct{}
	each time.Duration
	from func() bool
}

func (s *slowness) wait() {
	if s.from != nil && !s.from() {
		return
	}
	if s.turn != nil {
		s.turn <- struct{}{}
		defer func() { <-s.turn }()
	}
	time.Sleep(s.each)
}

type slowListener struct {
	net.Listener
	slow *atomic.Pointer[slowness]
}

func (l slowListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return slowConn{conn, l.slow}, err
}

type slowConn struct {
	net.Conn
	slow *atomic.Pointer[slowness]
}

func (c slowConn) Write(b []byte) (int, error) {
	if s := c.slow.Load(); s != nil {
		s.wait()
	}
	return c.Conn.Write(b)
}

const serviceAddress = "10.0.0.100:1"

func (s *site) dial(ctx context.Context, address string) (net.Conn, error) {
	s.mu.Lock()
	to := s.replicas[address]
	if address == serviceAddress {
		s.asked.Add(1)
		to = s.leads
	}
	s.mu.Unlock()
	if to == nil {
		return nil, errors.New("nobody leads")
	}
	return to.listener.DialContext(ctx)
}

func (s *site) lead(l *leader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leads = l
}

// An enforcer is the real client of a sidecar and its engine.
type enforcer struct {
	client  *fleet.Client
	breaker *twotier.Breaker
	engine  *twotier.Limiter
	mu      sync.Mutex
	sent    *fleetpb.Holders_Count
	forced  string
}

var _ fleet.Handler = (*enforcer)(nil)

func (e *enforcer) InForce() (version string, holders []*fleetpb.Holders_Count) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sent != nil {
		holders = []*fleetpb.Holders_Count{e.sent}
	}
	return e.forced, holders
}

func (e *enforcer) Apply(version string, _ []byte, _ []*fleetpb.Secret) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forced = version
	return nil
}

func (e *enforcer) SetHolders(namespace, name string, n int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sent = &fleetpb.Holders_Count{Namespace: namespace, Policy: name, Holders: n}
	e.engine.SetHolders(n)
}

func (*enforcer) Reached(string, store.Reached) {}

func (*enforcer) Report(time.Time, uint64) *fleetpb.Report { return new(fleetpb.Report) }

func (*enforcer) Audit(q *fleetpb.AuditQuery) *fleetpb.AuditReply {
	return &fleetpb.AuditReply{Id: q.GetId()}
}

func (e *enforcer) Promise(now, until limiter.Instant) (limiter.Instant, bool) {
	return e.breaker.Promise(now, until)
}

// newEnforcer returns the sidecar of a pod.
func (s *site) newEnforcer(t *testing.T, id podauth.Identity, p policy.Policy, dir string) *enforcer {
	file := filepath.Join(dir, id.Pod)
	if err := os.WriteFile(file, []byte(tokenOf(id)), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := fleet.New(fleet.Config{
		Address: serviceAddress, ServerName: "fleet", TokenFile: file, Log: slog.New(slog.DiscardHandler), Dial: s.dial,
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}),
		Identity: fleet.Identity{Namespace: id.Namespace, Pod: id.Pod, PodUID: id.PodUID, BootNonce: "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	e := &enforcer{client: client, breaker: twotier.NewBreaker(client)}
	e.engine, err = twotier.New(twotier.Config{
		Scope: store.Scope{Cluster: "test", Namespace: p.Namespace, Policy: p.Name, Limit: "all"}, Params: p.Limits[0].Params(&p),
		Mode: twotier.Leased, Size: twotier.Size{Type: twotier.Fixed, Batch: 5}, MaxKeys: 1, OnUnavailable: twotier.LocalShare,
	}, e.breaker)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestAFleetHandedOverHasNoOutage: a fleet that asks for twice its limit has all of the limit
// admitted in every window and nothing by local shares, while the leader stops in order
// under it. A replica takes five seconds to authenticate that fleet.
func TestAFleetHandedOverHasNoOutage(t *testing.T) {
	sizes := []int{200}
	switch {
	case underRace:
		sizes = []int{20}
	case *large:
		sizes = []int{1000, 2000, 5000}
	}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				handOverUnder(t, plannedEnd{n: n, dir: dir, limit: 20_000, pause: time.Duration(n) * time.Second / 4000, at: 2500 * time.Millisecond})
			})
		})
	}
}

// TestAFleetIsServedUntilItHearsOfAHandOver: a leader ends early in a window, for which most sidecars
// have no lease yet, and takes a millisecond for each write, goodbyes too.
func TestAFleetIsServedUntilItHearsOfAHandOver(t *testing.T) {
	n := 200
	if underRace {
		n = 20
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		handOverUnder(t, plannedEnd{n: n, dir: dir, limit: 200_000, pause: time.Second, at: 300 * time.Millisecond, slow: time.Millisecond})
	})
}

// TestAFleetThatHearsOfAHandOverLateBeginsNothing: a leader ends early in a window, for which most sidecars
// have no lease yet. Its goodbyes come after the next one leads, and so late that sidecars take it for lost.
func TestAFleetThatHearsOfAHandOverLateBeginsNothing(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		handOverUnder(t, plannedEnd{n: 20, dir: dir, limit: 20_000, pause: time.Second, at: 300 * time.Millisecond, late: 3 * time.Second})
	})
}

// A plannedEnd is that of a leader under load.
type plannedEnd struct {
	n     int
	dir   string
	limit int64
	pause time.Duration // between two requests of a sidecar
	at    time.Duration // when the leader ends, in a window
	slow  time.Duration // that a write takes the leader from then on; 0 for none
	late  time.Duration // that a write takes the leader once it says goodbye; 0 for none
}

func handOverUnder(t *testing.T, o plannedEnd) {
	const window = 10 * limiter.Second
	n, dir, limit, pause := o.n, o.dir, o.limit, o.pause
	p := limited("shop", 1, limit, window)
	p.OnStoreUnavailable = policy.LocalShare
	s, replicas, elected, ids := newSite(t, p, n)
	first, next := replicas[0], replicas[1]

	var alone, failed atomic.Int64
	admitted := [12]atomic.Int64{}
	began := limiter.Rate{Limit: 1, Window: window}.WindowAt(limiter.Instant(time.Now().UnixMicro())).Index
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	counting := new(atomic.Bool)
	for i, id := range ids {
		e := s.newEnforcer(t, id, p, dir)
		running.Go(func() { e.client.Run(ctx, e) })
		running.Go(func() {
			defer e.engine.Close(context.Background())
			time.Sleep(authenticationTime + time.Second + time.Duration(i)*pause/time.Duration(n))
			for ctx.Err() == nil {
				d, err := e.engine.Acquire(ctx, twotier.Request{Cost: 1})
				switch {
				case ctx.Err() != nil:
				case err != nil:
					failed.Add(1)
				case d.Allowed:
					admitted[limiter.Rate{Limit: 1, Window: window}.WindowAt(limiter.Instant(time.Now().UnixMicro())).Index-began].Add(1)
				}
				if err == nil && d.Source == twotier.FromLocalShare && counting.Load() {
					alone.Add(1)
				}
				time.Sleep(pause)
			}
		})
	}
	sleepToWindow(window)
	time.Sleep(time.Duration(window) * time.Microsecond) // all wait at the next leader
	counting.Store(true)
	time.Sleep(o.at)
	if o.slow > 0 {
		first.slow.Store(&slowness{turn: make(chan struct{}, 1), each: o.slow})
	}
	if o.late > 0 {
		first.slow.Store(&slowness{each: o.late, from: first.present.Load().parting.Load})
	}
	s.lead(nil)
	first.stop()
	if err := <-first.stopped; err != nil {
		t.Errorf("Start: %v", err)
	}
	running.Go(first.Close)
	time.Sleep(max(30*time.Millisecond, o.late*5/6))
	close(elected[1])
	led := time.Now()
	s.lead(next)
	for next.present.Load() == nil || next.present.Load().sessions.len() < n {
		time.Sleep(time.Millisecond)
		if time.Since(led) > 10*authenticationTime {
			t.Fatal("not all sidecars follow the next leader")
		}
	}
	back := time.Since(led)
	sleepToWindow(window)
	sleepToWindow(window)
	counting.Store(false)
	stop()
	running.Wait()
	next.end()
	if back > time.Second {
		t.Errorf("the sidecars were back after %s", back)
	}
	if alone.Load() > 0 || failed.Load() > 0 {
		t.Errorf("%d requests were decided by local shares and %d failed", alone.Load(), failed.Load())
	}
	for i := range admitted { // the first is not a whole one
		least := min(limit, int64(10*n)*int64(time.Second/pause)/2)
		if got := admitted[i].Load(); got > limit || 1 <= i && i <= 3 && got < least {
			t.Errorf("window %d admitted %d of %d, want at least %d", i, got, limit, least)
		}
	}
}

// TestAPromiseOfAHandOverEndsSoon: nobody leads for long after a leader ended in order, shortly before a window
// begins. Sidecars begin that window on their shares, as after a crash.
func TestAPromiseOfAHandOverEndsSoon(t *testing.T) {
	const n, window, before, limit = 5, 10 * limiter.Second, 800 * time.Millisecond, 100
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 1, limit, window)
		p.OnStoreUnavailable = policy.LocalShare
		s, replicas, _, ids := newSite(t, p, n)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		var fleet []*enforcer
		for _, id := range ids {
			e := s.newEnforcer(t, id, p, dir)
			fleet = append(fleet, e)
			defer e.engine.Close(context.Background())
			running.Go(func() { e.client.Run(ctx, e) })
		}
		time.Sleep(authenticationTime)
		sleepToWindow(window)
		admit := func() (admitted int64) {
			for _, e := range fleet {
				for range limit {
					d, err := e.engine.Acquire(ctx, twotier.Request{Cost: 1})
					if err == nil && d.Allowed {
						admitted++
					}
				}
			}
			return admitted
		}
		if got := admit(); got != limit {
			t.Errorf("%d of %d are admitted while the leader serves", got, limit)
		}
		time.Sleep(time.Duration(window)*time.Microsecond - before)
		s.lead(nil)
		replicas[0].end()
		sleepToWindow(window)
		time.Sleep(twotier.MoveTime)
		if got := admit(); got != limit {
			t.Errorf("%d of %d are admitted by shares of a window that no leader served", got, limit)
		}
		stop()
		running.Wait()
		replicas[1].end()
	})
}

// TestAFleetThatWaitsSeldomLooksForTheLeader: while nobody leads, it waits at the replica that
// leads next. If it looked for the leader all the time, too, most of it would be about to connect
// when that leads.
func TestAFleetThatWaitsSeldomLooksForTheLeader(t *testing.T) {
	const n, headless, most = 5, 15 * time.Second, 15
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 1, 100, 10*limiter.Second)
		s, replicas, elected, ids := newSite(t, p, n)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for _, id := range ids {
			e := s.newEnforcer(t, id, p, dir)
			defer e.engine.Close(context.Background())
			running.Go(func() { e.client.Run(ctx, e) })
		}
		time.Sleep(3 * authenticationTime)
		if got := replicas[1].waiting.len(); got != n {
			t.Fatalf("%d sidecars wait, want %d", got, n)
		}
		s.lead(nil)
		replicas[0].end()
		s.asked.Store(0)
		time.Sleep(headless)
		if asked := s.asked.Load(); asked == 0 || asked > n*most {
			t.Errorf("%d sidecars looked %d times for a leader in %s, want at most %d times each", n, asked, headless, most)
		}
		close(elected[1])
		time.Sleep(time.Second)
		if got := replicas[1].present.Load().sessions.len(); got != n {
			t.Errorf("%d sidecars followed the next leader, want %d", got, n)
		}
		stop()
		running.Wait()
		replicas[1].end()
	})
}
