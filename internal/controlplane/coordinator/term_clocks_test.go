package coordinator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/weir-dev/weir/internal/controlplane/leadership"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

const (
	testHold  = 3 * time.Second
	testLease = 5 * time.Second
)

// An election is the Lease that nodes lead by.
type election struct {
	coordinationv1client.LeaseInterface
	lease *coordinationv1.Lease
}

func (e *election) Leases(string) coordinationv1client.LeaseInterface { return e }

func (e *election) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	if e.lease == nil {
		return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), "weir-controller")
	}
	return e.lease.DeepCopy(), nil
}

func (e *election) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return e.Update(ctx, lease, metav1.UpdateOptions{})
}

func (e *election) Update(_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	e.lease = lease.DeepCopy()
	return lease, nil
}

// A node is a machine with a clock of its own, on which a controller leads.
type node struct {
	t      *testing.T
	offset time.Duration // of its wall clock
	lock   *leadership.Lock
	term   *term
	s      *session
	p      policy.Policy
}

// newNode begins a term on a node whose wall clock is off by the offset, with the lock
// that e is about.
func newNode(t *testing.T, e *election, terms TermStore, p policy.Policy, offset time.Duration) *node {
	t.Helper()
	n := &node{t: t, offset: offset, p: p}
	boot := time.Now()
	n.lock = leadership.New(leadership.Config{
		Leases: e, Identity: fmt.Sprint(boot.UnixNano()), Hold: testHold,
		Boot: func() time.Duration { return time.Since(boot) + time.Second },
		Wall: func() time.Time { return time.Now().Add(n.offset) },
	})
	if _, _, err := n.lock.Get(t.Context()); apierrors.IsNotFound(err) {
		err = n.lock.Create(t.Context(), n.record())
		if err != nil {
			t.Fatal(err)
		}
	}
	n.renew()
	begun, err := terms.Begin(t.Context(), n.lock.Held)
	if err != nil {
		t.Fatal(err)
	}
	n.term = newTerm(New(Config{Terms: terms, Leadership: n.lock}), begun, logr.Discard())
	t.Cleanup(n.term.tasks.ShutDown)
	config, err := newConfig(policy.Snapshot{Cluster: "test", Policies: []policy.Policy{p}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	n.s = newSession(pod("shop", "web-0"), &fleetpb.Hello{BootNonce: "1"}, func(error) {})
	n.s.serve(config, true)
	return n
}

func (n *node) record() resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{
		HolderIdentity: n.lock.Identity(), RenewTime: metav1.NewTime(time.Now().Add(n.offset)),
	}
}

func (n *node) renew() {
	n.t.Helper()
	if err := n.lock.Update(n.t.Context(), n.record()); err != nil {
		n.t.Fatal(err)
	}
}

// ask asks for units and returns the answer.
func (n *node) ask(want int64) *fleetpb.LeaseReply {
	rate := n.p.Limits[0].Rates[0]
	request := &fleetpb.LeaseRequest{
		Id: 1, Key: &fleetpb.Key{Namespace: "shop", Policy: "checkout", Limit: "all"}, Generation: 1,
		Rates: []*fleetpb.Rate{{Limit: rate.Limit, WindowMicros: int64(rate.Window)}}, Min: 1, Want: want,
	}
	limit, err := n.s.limit(request)
	reply, _ := n.term.lease(n.t.Context(), limit, err, request)
	return reply
}

// lead grants for that long, renewing each second, and notes what it grants by window.
func (n *node) lead(lasts time.Duration, granted map[int64]int64) {
	n.t.Helper()
	most := n.p.Limits[0].Rates[0].Limit
	for i := range int(lasts / (100 * time.Millisecond)) {
		if i%10 == 0 {
			n.renew()
		}
		reply := n.ask(most)
		if reply.GetError() != "" {
			n.t.Fatal(reply.GetError())
		}
		if reply.GetGranted() > 0 {
			granted[reply.GetWindows()[0].GetIndex()] += reply.GetGranted()
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// hangOn goes on granting without a renewal until the lock is not held any more.
func (n *node) hangOn(granted map[int64]int64) {
	for began := time.Now(); time.Since(began) < 2*testHold; {
		reply := n.ask(n.p.Limits[0].Rates[0].Limit)
		if reply.GetError() != "" {
			return
		}
		if reply.GetGranted() > 0 {
			granted[reply.GetWindows()[0].GetIndex()] += reply.GetGranted()
		}
		time.Sleep(50 * time.Millisecond)
	}
	n.t.Fatal("it goes on without the lock")
}

// stepDown hands over and releases the lock; the record may fail to be written.
func (n *node) stepDown() {
	n.t.Helper()
	n.term.stepDownForTest()
	record := n.record()
	record.HolderIdentity = ""
	if err := n.lock.Update(n.t.Context(), record); err != nil {
		n.t.Fatal(err)
	}
}

// A node whose clock is ahead hands over in order to one that crashes: the store's clock
// of the second one is ahead of its own wall clock, and the third goes on from there.
func TestAHandOverAndThenACrashGrantNothingTwice(t *testing.T) {
	for _, skew := range []time.Duration{0, 10 * time.Second, 2 * time.Minute, time.Hour} {
		for _, length := range []limiter.Micros{limiter.Second, 60 * limiter.Second} {
			t.Run(fmt.Sprint(skew, " ahead, windows of ", length), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := limited("shop", 1, 10, length)
					e, terms, granted := &election{}, &memoryTerms{}, map[int64]int64{}
					a := newNode(t, e, terms, p, skew)
					a.lead(70*time.Second, granted)
					a.stepDown()
					b := newNode(t, e, terms, p, 0)
					b.lead(130*time.Second, granted)
					b.hangOn(granted)
					time.Sleep(testLease - testHold)
					c := newNode(t, e, terms, p, 0)
					c.lead(130*time.Second, granted)
					checkGranted(t, granted, 10)
				})
			})
		}
	}
}

// A leader that finds no Lease cannot know whether another one is still serving: what
// begins within its hold is not served.
func TestWithoutALeaseTheLeaderBeforeMayGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 1, 10, limiter.Second)
		e, terms, granted := &election{}, &memoryTerms{}, map[int64]int64{}
		a := newNode(t, e, terms, p, 0)
		a.lead(10*time.Second, granted)
		a.renew()
		e.lease = nil
		b := newNode(t, e, terms, p, 0)
		end := time.Now().Add(2 * testHold)
		for time.Now().Before(end) {
			for _, n := range []*node{a, b} {
				if reply := n.ask(10); reply.GetGranted() > 0 {
					granted[reply.GetWindows()[0].GetIndex()] += reply.GetGranted()
				}
				b.renew()
				time.Sleep(50 * time.Millisecond)
			}
		}
		checkGranted(t, granted, 10)
	})
}

func checkGranted(t *testing.T, granted map[int64]int64, most int64) {
	t.Helper()
	over := 0
	for _, sum := range granted {
		if sum > most {
			over++
		}
	}
	if over > 0 || len(granted) == 0 {
		t.Errorf("%d of %d windows were granted more than %d", over, len(granted), most)
	}
}

// Over random terms that end in order, by a crash, or without a record of their end, on
// nodes whose clocks differ and step, no window is granted more than its limit.
func TestNoChangeOfLeaderAndClockGrantsTwice(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 0))
				length := []limiter.Micros{limiter.Second, 60 * limiter.Second}[rng.IntN(2)]
				p := limited("shop", 1, 5+rng.Int64N(20), length)
				e, terms, granted := &election{}, &memoryTerms{}, map[int64]int64{}
				for range 10 {
					n := newNode(t, e, terms, p, time.Duration(rng.Int64N(int64(5*time.Minute))))
					n.offset += time.Duration(rng.Int64N(int64(4*time.Minute))) - 2*time.Minute // its clock is set
					n.lead(time.Duration(rng.Int64N(int64(90*time.Second))), granted)
					switch rng.IntN(4) {
					case 0, 1:
						n.stepDown()
					case 2:
						terms.mu.Lock()
						terms.left.Term++ // what is handed over is not recorded
						terms.mu.Unlock()
						n.stepDown()
					default:
						n.hangOn(granted)
						time.Sleep(testLease - testHold)
					}
				}
				checkGranted(t, granted, p.Limits[0].Rates[0].Limit)
			})
		})
	}
}
