package coordinator

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/records"
	"github.com/weir-dev/weir/internal/fleetpb"
	pools "github.com/weir-dev/weir/pkg/concurrency/coordinator/memory"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

const (
	beatInterval = time.Second
	leaseTTL     = 2 * time.Second
)

// pooled returns a pool called "db" with a fixed limit.
func pooled(namespace string, generation, limit int64) *policy.Pool {
	return &policy.Pool{
		Namespace: namespace, Name: "db", Generation: generation,
		Mode: policy.Enforce, Coordinator: policy.Store{Type: policy.ControllerStore},
		Limit: policy.LimitRange{Min: limit, Initial: limit, Max: limit}, Algorithm: policy.LimitAlgorithm{Type: policy.FixedLimit},
		Aggregate: policy.Median, Allocation: policy.EqualSplit, Handoff: policy.Acknowledged,
		Heartbeat: policy.Heartbeat{
			Interval: limiter.Micros(beatInterval.Microseconds()), LeaseTTL: limiter.Micros(leaseTTL.Microseconds()), MinInterval: 100 * limiter.Millisecond,
		},
		SelfFence:           policy.SelfFence{Margin: 500 * limiter.Millisecond, OnFenced: policy.Drain},
		OnCoordinatorOutage: policy.FailClosed, StatusCode: 503,
	}
}

// sharing is a Resolver with one pool a namespace and no policy.
func sharing(pools ...*policy.Pool) *policies {
	p := publishing()
	p.share(pools...)
	return p
}

func (p *policies) share(pools ...*policy.Pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pools = map[string]*policy.Pool{}
	for _, one := range pools {
		p.pools[one.Namespace] = one
	}
}

// first is the record of terms before anybody led.
func first() *memoryTerms { return &memoryTerms{left: records.Handover{First: true}} }

// matching has pods have these pools of some requests, too.
func (p *policies) matching(some ...policy.Pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.some = some
}

// A holder is a process that beats, as an engine does.
type holder struct {
	*sidecar
	seq                 int64
	term, applied, held int64
	inFlight            int64
}

// join opens a session of a new process and waits for its pool.
func (l *leader) join(id podauth.Identity, nonce string) *holder {
	l.t.Helper()
	h := &holder{}
	h.attach(l, id, nonce)
	return h
}

// attach opens another session of the same process.
func (h *holder) attach(l *leader, id podauth.Identity, nonce string) {
	l.t.Helper()
	h.sidecar = l.connect(id, nonce)
	h.config()
}

// message returns the next beat for a pool; change may falsify it.
func (h *holder) message(p *policy.Pool, change ...func(*fleetpb.Heartbeat)) *fleetpb.Heartbeat {
	h.seq++
	m := &fleetpb.Heartbeat{
		Id: uint64(h.seq), Namespace: p.Namespace, Pool: p.Name, Generation: p.Generation, Op: int32(pool.Beat),
		Seq: h.seq, Term: h.term, Applied: h.applied, Held: h.held, InFlight: h.inFlight, Peak: h.inFlight,
	}
	for _, c := range change {
		c(m)
	}
	return m
}

// beat beats, adopts the share that it gets, and returns the answer.
func (h *holder) beat(p *policy.Pool, change ...func(*fleetpb.Heartbeat)) *fleetpb.Share {
	h.t.Helper()
	m := h.message(p, change...)
	h.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Heartbeat{Heartbeat: m}})
	for {
		share := h.recv().GetShare()
		if share == nil {
			continue // of configuration
		}
		if share.GetId() != m.GetId() {
			h.t.Fatalf("beat %d was answered by %v", m.GetId(), share)
		}
		if share.GetError() == "" {
			h.term, h.applied, h.held = share.GetTerm(), share.GetGeneration(), share.GetShare()
		}
		return share
	}
}

func leaving(m *fleetpb.Heartbeat) { m.Op = int32(pool.Leave) }

func TestABeatIsOfThePoolThatThePodWasSent(t *testing.T) {
	shop, bank := pooled("shop", 3, 10), pooled("bank", 3, 10)
	onRedis := pooled("shop", 3, 10)
	onRedis.Coordinator = policy.Store{Type: policy.RedisStore, Address: "redis:6379"}

	tests := map[string]struct {
		pool   *policy.Pool
		change func(*fleetpb.Heartbeat)
		want   string // part of the error; empty for a share
		outage bool   // the holder and the controller may know different versions
	}{
		"the pool that was sent":      {pool: shop},
		"an older generation":         {pool: shop, change: func(m *fleetpb.Heartbeat) { m.Generation = 1 }},
		"a pool of another namespace": {pool: shop, change: func(m *fleetpb.Heartbeat) { m.Namespace = "bank" }, want: "not of this pod's namespace"},
		"a pool that does not select the pod": {
			pool: shop, change: func(m *fleetpb.Heartbeat) { m.Pool = "cache" }, want: "does not apply to this pod", outage: true,
		},
		"no pool at all": {
			pool: shop, change: func(m *fleetpb.Heartbeat) { m.Namespace, m.Pool = "", "" }, want: "not of this pod's namespace",
		},
		"a generation that is not published yet": {
			pool: shop, change: func(m *fleetpb.Heartbeat) { m.Generation = 4 }, want: "not known to this controller yet", outage: true,
		},
		"a pool that Redis divides": {pool: onRedis, want: "not divided by this controller", outage: true},
		"an operation that does not exist": {
			pool: shop, change: func(m *fleetpb.Heartbeat) { m.Op = 256 + int32(pool.Beat) }, want: "Op",
		},
		"a number that is not one": {pool: shop, change: func(m *fleetpb.Heartbeat) { m.Seq = 0 }, want: "Seq"},
		"less than nothing in flight": {
			pool: shop, change: func(m *fleetpb.Heartbeat) { m.InFlight, m.Peak = -1, 0 }, want: "InFlight",
		},
		"a share of a later leader": {
			pool: shop, change: func(m *fleetpb.Heartbeat) { m.Term = 2 }, want: "old copy", outage: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := lead(t, first(), sharing(tc.pool, bank))
				defer l.end()
				h := l.join(pod("shop", "web-0"), "1")
				defer h.close()
				if tc.change == nil {
					tc.change = func(*fleetpb.Heartbeat) {}
				}
				share := h.beat(tc.pool, tc.change)
				switch {
				case tc.want == "" && (share.GetError() != "" || share.GetShare() != 10 || share.GetTerm() != 1 || share.GetTtlMicros() != leaseTTL.Microseconds()):
					t.Errorf("share = %v, want all of the limit", share)
				case tc.want != "" && share.GetDefect() == tc.outage:
					t.Errorf("share = %v, want it to be an outage: %t", share, tc.outage)
				case tc.want != "" && (!strings.Contains(share.GetError(), tc.want) || share.GetShare() != 0 || share.GetTtlMicros() != 0):
					t.Errorf("share = %v, want an error with %q and nothing else", share, tc.want)
				}
				// A defect of a beat of the pod's own pool shows in the pool's status.
				observed := l.ObservePool(tc.pool.Namespace, tc.pool.Name).Sessions
				shows := tc.want == "Op" || tc.want == "Seq" || tc.want == "InFlight"
				if len(observed) != 1 || shows && observed[0].Rejected != "a beat: "+share.GetError() || shows && !strings.HasSuffix(share.GetError(), cure) || !shows && observed[0].Rejected != "" {
					t.Errorf("sessions = %+v, want that one of %v shows: %t", observed, share, shows)
				}
			})
		})
	}
}

func TestHoldersShareALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pooled("shop", 1, 10)
		l := lead(t, first(), sharing(p))
		defer l.end()
		a := l.join(pod("shop", "web-0"), "1")
		defer a.close()
		b := l.join(pod("shop", "web-1"), "1")
		defer b.close()
		for i, step := range []struct {
			of   *holder
			want int64
			why  string
		}{
			{a, 10, "nobody else is there"},
			{b, 0, "the other has it all"},
			{a, 5, "half is the other's"},
			{b, 0, "the smaller share is not confirmed"},
			{a, 5, "it is confirmed now"},
			{b, 5, "the other confirmed"},
		} {
			if share := step.of.beat(p); share.GetShare() != step.want || share.GetError() != "" {
				t.Errorf("beat %d: share = %v, want %d: %s", i, share, step.want, step.why)
			}
		}
	})
}

// A pod of another namespace has a pool of its own, also of the same name.
func TestPoolsOfTwoNamespacesAreTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop, bank := pooled("shop", 1, 10), pooled("bank", 1, 7)
		l := lead(t, first(), sharing(shop, bank))
		defer l.end()
		a := l.join(pod("shop", "web-0"), "1")
		defer a.close()
		b := l.join(pod("bank", "web-0b"), "1")
		defer b.close()
		if x, y := a.beat(shop), b.beat(bank); x.GetShare() != 10 || y.GetShare() != 7 {
			t.Errorf("shares = %v and %v, want all of both pools", x, y)
		}
	})
}

// A process that started again is another holder: what the one before had may be in
// use until it has expired.
func TestARestartedProcessIsAnotherHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pooled("shop", 1, 10)
		l := lead(t, first(), sharing(p))
		defer l.end()
		before := l.join(pod("shop", "web-0"), "1")
		defer before.close()
		before.beat(p)
		after := l.join(pod("shop", "web-0"), "2")
		defer after.close()
		if share := after.beat(p); share.GetShare() != 0 || share.GetHolders() != 2 {
			t.Errorf("share = %v, want none of what the process before holds", share)
		}
		time.Sleep(leaseTTL)
		if share := after.beat(p); share.GetShare() != 10 || share.GetHolders() != 1 {
			t.Errorf("share = %v, want all of what has expired", share)
		}
	})
}

func TestAStreamThatBreaksKeepsItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pooled("shop", 1, 10)
		l := lead(t, first(), sharing(p))
		defer l.end()
		h, other := l.join(pod("shop", "web-0"), "1"), l.join(pod("shop", "web-1"), "1")
		defer other.close()
		h.beat(p)
		h.close()
		if share := other.beat(p); share.GetShare() != 0 {
			t.Errorf("share = %v, want none while the other's lasts", share)
		}
		h.attach(l, pod("shop", "web-0"), "1")
		defer h.close()
		if share := h.beat(p); share.GetShare() != 5 {
			t.Errorf("share = %v, want the half", share)
		}
	})
}

// Whichever generation a holder runs, it is judged by the one that is published.
func TestOlderGenerationsWorkByTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := pooled("shop", 1, 10), pooled("shop", 2, 4)
		l := lead(t, first(), sharing(before))
		defer l.end()
		h := l.join(pod("shop", "web-0"), "1")
		defer h.close()
		h.beat(before)
		l.policies.share(after)
		l.Refresh("shop")
		synctest.Wait()
		if share := h.beat(before); share.GetShare() != 4 || share.GetLimit() != 4 {
			t.Errorf("share = %v, want the limit of the newer generation", share)
		}
	})
}

// A pod that left a pool reports what it still has in flight until that is done.
func TestAPodLetsGoOfAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pooled("shop", 1, 10)
		l := lead(t, first(), sharing(p))
		defer l.end()
		h := l.join(pod("shop", "web-0"), "1")
		defer h.close()
		h.beat(p)
		l.policies.share()
		l.Refresh("shop")
		h.config()
		if share := h.beat(p); share.GetError() != "" {
			t.Errorf("share = %v, want an answer while the pod lets go", share)
		}
		if share := h.beat(p, leaving); share.GetError() != "" || share.GetHolders() != 0 {
			t.Errorf("share = %v, want nobody to be left", share)
		}
		if share := h.beat(p); !strings.Contains(share.GetError(), "does not apply") {
			t.Errorf("share = %v, want none for a pod that left", share)
		}
	})
}

func TestNoShareBeforeThePoolIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pooled("shop", 1, 10)
		l := lead(t, first(), &policies{})
		defer l.end()
		h := &holder{sidecar: l.connect(pod("shop", "web-0"), "1")}
		defer h.close()
		if share := h.beat(p); share.GetError() == "" || share.GetDefect() {
			t.Errorf("share = %v, want an outage", share)
		}
	})
}

// A planned change of leader leaves every share as it is.
func TestAPlannedHandOverKeepsTheShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pooled("shop", 1, 10)
		terms := first()
		ids := []podauth.Identity{pod("shop", "web-0"), pod("shop", "web-1")}
		holders := []*holder{{}, {}}
		for i := range 3 {
			l := lead(t, terms, sharing(p))
			for j, h := range holders {
				h.attach(l, ids[j], "1")
			}
			for range 3 {
				for _, h := range holders {
					h.beat(p)
				}
			}
			for j, h := range holders {
				if share := h.beat(p); share.GetShare() != 5 || share.GetTerm() != 1 || share.GetQuarantinedMicros() != 0 {
					t.Errorf("leader %d: share of holder %d = %v, want five of term 1", i+1, j, share)
				}
			}
			l.end()
			for _, h := range holders {
				h.close()
			}
			time.Sleep(time.Second)
		}
		// Nobody is back: each share lasts its full time from when the next leader began.
		l := lead(t, terms, sharing(p))
		defer l.end()
		late := l.join(pod("shop", "web-2"), "1")
		defer late.close()
		time.Sleep(leaseTTL - time.Microsecond)
		if share := late.beat(p); share.GetShare() != 0 {
			t.Errorf("share = %v, want none before those of the leader before expired", share)
		}
		time.Sleep(time.Microsecond)
		if share := late.beat(p); share.GetShare() != 10 {
			t.Errorf("share = %v, want all of what has expired", share)
		}
	})
}

// crash has a leader end without a word.
func crash(terms *memoryTerms) {
	terms.mu.Lock()
	defer terms.mu.Unlock()
	terms.left.Pools, terms.left.Ledger, terms.left.Stopped = nil, nil, 0
}

// After a crash holders keep what they use, and nobody gets more until every share
// that was forgotten has expired.
func TestACrashIsFollowedByAQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, other := pooled("shop", 1, 10), pooled("bank", 1, 7)
		terms := first()
		l := lead(t, terms, sharing(p))
		id := pod("shop", "web-0")
		h := l.join(id, "1")
		h.beat(p)
		l.end()
		h.close()
		crash(terms)

		l = lead(t, terms, sharing(p, other))
		defer l.end()
		h.attach(l, id, "1")
		defer h.close()
		late := l.join(pod("shop", "web-1"), "1")
		defer late.close()
		if share := late.beat(p); share.GetShare() != 0 || share.GetQuarantinedMicros() != leaseTTL.Microseconds() || share.GetTerm() != 2 {
			t.Errorf("share of a holder that held none = %v, want none for a lease", share)
		}
		if share := h.beat(p); share.GetShare() != 5 || share.GetTerm() != 2 {
			t.Errorf("share of a holder that held all = %v, want its half of it", share)
		}
		time.Sleep(leaseTTL / 2)
		b := l.join(pod("bank", "web-0b"), "1")
		defer b.close()
		if share := b.beat(other); share.GetShare() != 0 || share.GetQuarantinedMicros() != leaseTTL.Microseconds()/2 {
			t.Errorf("share of a pool that this leader never saw = %v, want none: the leader before may have divided it", share)
		}
		h.beat(p)
		time.Sleep(leaseTTL / 2)
		if share := b.beat(other); share.GetShare() != 7 {
			t.Errorf("share = %v, want all after the quarantine", share)
		}
		if share := late.beat(p); share.GetShare() != 5 {
			t.Errorf("share = %v, want its half after the quarantine", share)
		}
	})
}

func TestWhoWaitsForAQuarantine(t *testing.T) {
	tests := map[string]struct {
		left  records.Handover
		seen  time.Duration // since a holder of the lock was seen; 0 for never
		after time.Duration // of the leader's term the first beat comes
		want  bool
	}{
		"nobody led before":                                  {left: records.Handover{First: true}},
		"the record was deleted, not the lock":               {left: records.Handover{First: true}, seen: time.Minute, want: true},
		"the leader before crashed":                          {left: records.Handover{Term: 1}, want: true},
		"a pool that is new long after a crash":              {left: records.Handover{Term: 1}, after: leaseTTL},
		"the leader before handed over pools":                {left: records.Handover{Term: 1, Pools: noPools(t)}},
		"what the leader before handed over is not a record": {left: records.Handover{Term: 1, Pools: []byte("not pools")}, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				held, predecessor := true, time.Time{}
				if tc.seen > 0 {
					predecessor = time.Now().Add(-tc.seen)
				}
				p := pooled("shop", 1, 10)
				l := lead(t, &memoryTerms{left: tc.left}, sharing(p), func(c *Config) {
					c.Leadership = &lock{held: &held, predecessor: predecessor}
				})
				defer l.end()
				h := l.join(pod("shop", "web-0"), "1")
				defer h.close()
				time.Sleep(tc.after)
				if share := h.beat(p); (share.GetQuarantinedMicros() > 0) != tc.want || (share.GetShare() == 0) != tc.want {
					t.Errorf("share = %v, want a quarantine: %t", share, tc.want)
				}
			})
		})
	}
}

// A leader that may have lost the lock answers no beat, and one that steps down none
// either. Neither ends a share: it lasts its time.
func TestNoShareWithoutTheLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := true
		p := pooled("shop", 1, 10)
		l := lead(t, first(), sharing(p), func(c *Config) { c.Leadership = &lock{held: &held} })
		h := l.join(pod("shop", "web-0"), "1")
		held = false
		if share := h.beat(p); share.GetError() == "" || share.GetDefect() || share.GetShare() != 0 {
			t.Errorf("share = %v, want an outage", share)
		}
		held = true
		l.present.Load().pools.Seal()
		if share := h.beat(p); share.GetError() == "" || share.GetDefect() || share.GetShare() != 0 {
			t.Errorf("share = %v, want an outage", share)
		}
		l.end()
		h.close()
	})
}

func TestBeatsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, registry := pooled("shop", 1, 10), prometheus.NewRegistry()
		l := lead(t, &memoryTerms{left: records.Handover{Term: 1}}, sharing(p), func(c *Config) { c.Registerer = registry })
		defer l.end()
		h := l.join(pod("shop", "web-0"), "1")
		defer h.close()
		h.beat(p)
		time.Sleep(leaseTTL)
		h.beat(p)
		h.beat(p)
		h.beat(p, func(m *fleetpb.Heartbeat) { m.Pool = "none" })
		h.beat(p, func(m *fleetpb.Heartbeat) { m.Namespace = "bank" })
		want := map[string]float64{beatQuarantined: 1, beatGranted: 2, beatUnavailable: 1, beatDefect: 1}
		if diff := cmp.Diff(want, byLabel(t, registry, "weir_coordinator_beats_total")); diff != "" {
			t.Errorf("beats (-want +got):\n%s", diff)
		}
	})
}

// byLabel returns the figures of a metric with one label, by its value.
func byLabel(t *testing.T, registry *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				out[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return out
}

// noPools is what a predecessor leaves that divided none, and stopped before the
// bubbles begin.
func noPools(t *testing.T) []byte {
	t.Helper()
	data, err := pools.New(pools.Options{Clock: func() limiter.Instant { return 1 }, Term: 1, First: true}).Export(records.MaxHandover)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
