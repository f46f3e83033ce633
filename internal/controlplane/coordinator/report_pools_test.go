package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/poolaudit"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// reportPool sends what the holder reports of a pool; change may alter it.
func (h *holder) reportPool(p *policy.Pool, change ...func(*fleetpb.PoolReport)) {
	h.t.Helper()
	r := &fleetpb.PoolReport{
		Namespace: p.Namespace, Pool: p.Name, Generation: p.Generation,
		Share: 5, Ceiling: 5, Inferred: 8, InFlight: 3, Peak: 5, Limit: 10, Holders: 2, Occupied: 10, Bound: 10,
		BaselineMicros: 21_000, LatencyMicros: 26_000, AdmittedTotal: 100,
	}
	for _, c := range change {
		c(r)
	}
	h.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Report{Report: &fleetpb.Report{Pools: []*fleetpb.PoolReport{r}}}})
	synctest.Wait()
}

func TestPoolsAreObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pooled("shop", 7, 10)
		l := lead(t, first(), sharing(p))
		defer l.end()
		a, b := l.join(pod("shop", "web-0"), "1"), l.join(pod("shop", "web-1"), "1")
		defer a.close()
		defer b.close()
		a.reportPool(p)
		b.reportPool(p, func(r *fleetpb.PoolReport) {
			r.InFlight, r.Spared, r.Queued, r.LatencyMicros = 4, 1, 2, 30_000
			r.Partitions = []*fleetpb.PoolReport_Partition{{Name: "live", Guaranteed: 4, InFlight: 1}}
		})
		got := l.ObservePool("shop", "db")
		want := &poolaudit.Figures{
			Generation: 7, Verdict: audit.Measured, Limit: 10, Holders: 2, Granted: 10, InFlight: 7, Queued: 2, Measuring: 2,
			Baseline: 21 * limiter.Millisecond, Latency: 26 * limiter.Millisecond, Overshoot: &poolaudit.Overshoot{},
			Partitions: []poolaudit.PartitionFigures{{Name: "live", Guaranteed: 4, InFlight: 1}},
		}
		if diff := cmp.Diff(want, got.Figures); diff != "" {
			t.Errorf("figures (-want +got):\n%s", diff)
		}
		if len(got.Sessions) != 2 || got.Term != 1 {
			t.Fatalf("observation = %+v, want both sessions in term 1", got)
		}
		for i, s := range got.Sessions {
			if s.Generation != 7 || s.Error != "" || s.Report == nil || s.Report.InFlight != int64(3+i) || s.Report.Spared != int64(i) {
				t.Errorf("session %d = %+v, want its report and acknowledgement", i, s)
			}
		}
		if other := l.ObservePool("bank", "db"); other.Figures != nil || len(other.Sessions) != 0 {
			t.Errorf("a pool of another namespace = %+v, want nothing", other)
		}
		b.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Leave{Leave: &fleetpb.Leave{}}})
		synctest.Wait()
		if got := l.ObservePool("shop", "db"); got.Figures.InFlight != 3 || len(got.Sessions) != 1 {
			t.Errorf("observation = %+v, want nothing of a pod that left", got)
		}
	})
}

// A limit per key is divided, and observed, beside that of all requests.
func TestALimitPerKeyIsDividedAndObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pooled("shop", 7, 10)
		p.Key = &policy.PoolKey{Parts: []policy.KeyPart{{Type: policy.PathKey}}, OnMissing: policy.Shared, Limit: 4}
		perKey := p.PerKey()
		l := lead(t, first(), sharing(p))
		defer l.end()
		a, b := l.join(pod("shop", "web-0"), "1"), l.join(pod("shop", "web-1"), "1")
		defer a.close()
		defer b.close()
		if got := b.beat(p); got.GetShare() != 10 || got.GetLimit() != 10 {
			t.Errorf("of the pool b has %v, want all of it", got)
		}
		if got := a.beat(perKey); got.GetShare() != 4 || got.GetLimit() != 4 || got.GetHolders() != 1 {
			t.Errorf("of every value a has %v, want all of it", got)
		}
		a.reportPool(p)
		b.reportPool(p)
		a.reportPool(perKey, func(r *fleetpb.PoolReport) {
			r.Share, r.Ceiling, r.Limit, r.InFlight, r.Occupied, r.Bound = 2, 2, 4, 2, 5, 4
		})
		got := l.ObservePool("shop", "db")
		if got.Figures == nil || got.Figures.InFlight != 6 || got.Figures.Verdict != audit.Measured {
			t.Errorf("figures of the pool %+v, want 6 in flight", got.Figures)
		}
		if got.Keys == nil || got.Keys.InFlight != 2 || got.Keys.Limit != 4 || got.Keys.Verdict != audit.Exceeded || got.Keys.Overshoot.Worst != 1 {
			t.Errorf("figures of its values %+v, want 2 in flight and one too many", got.Keys)
		}
		if len(got.Sessions) != 2 || got.Sessions[0].Keys == nil || got.Sessions[0].Keys.Share != 2 || got.Sessions[1].Keys != nil {
			t.Errorf("sessions %+v, want what the first says of its values", got.Sessions)
		}
		b.reportPool(perKey, func(r *fleetpb.PoolReport) { r.Share = -1 })
		if got := l.ObservePool("shop", "db"); got.Sessions[1].Rejected == "" {
			t.Errorf("session %+v, want it to say that a report cannot be read", got.Sessions[1])
		}
		if other := l.ObservePool("shop", perKey.Name); other.Keys != nil {
			t.Errorf("a limit per key has another: %+v", other.Keys)
		}
	})
}

// News of a limit per key is news of the object.
func TestNewsOfALimitPerKeyNamesThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pooled("shop", 7, 10)
		p.Key = &policy.PoolKey{Parts: []policy.KeyPart{{Type: policy.PathKey}}, OnMissing: policy.Shared, Limit: 4}
		l := lead(t, first(), sharing(p))
		defer l.end()
		a := l.join(pod("shop", "web-0"), "1")
		defer a.close()
		a.reportPool(p)
		news := func() (names []types.NamespacedName) {
			for over := time.After(auditInterval / 2); ; { // names that come in quick succession are gathered
				select {
				case name := <-l.PoolsChanged():
					names = append(names, name)
				case <-over:
					return names
				}
			}
		}
		news()
		a.reportPool(p.PerKey(), func(r *fleetpb.PoolReport) { r.CoordinatorError = "no route" })
		want := []types.NamespacedName{{Namespace: "shop", Name: "db"}}
		if diff := cmp.Diff(want, news()); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
	})
}

func TestAPoolIsProgrammedByWhatSidecarsAcknowledge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := pooled("shop", 1, 10), pooled("shop", 2, 10)
		l := lead(t, first(), sharing(before))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		sent := s.receiveConfig()
		session := func() PoolSession {
			t.Helper()
			synctest.Wait()
			got := l.ObservePool("shop", "db").Sessions
			if len(got) != 1 {
				t.Fatalf("sessions = %+v, want one", got)
			}
			return got[0]
		}
		if got := session(); got.Generation != 0 || got.Enforced != nil {
			t.Errorf("session = %+v, want it to enforce nothing before it says so", got)
		}
		s.acknowledge(sent.GetVersion(), "")
		if got := session(); got.Generation != 1 || got.Enforced == nil || got.Enforced.Generation != 1 {
			t.Errorf("session = %+v, want generation 1", got)
		}
		l.policies.share(after)
		l.Refresh("shop")
		sent = s.receiveConfig()
		s.acknowledge(sent.GetVersion(), "too new")
		if got := session(); got.Generation != 1 || got.Enforced.Generation != 1 || got.Error != "too new" {
			t.Errorf("session = %+v, want the last good generation and why", got)
		}
	})
}

func TestReportsOfPoolsThatWereNotSentAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop, bank := pooled("shop", 1, 10), pooled("bank", 1, 10)
		l := lead(t, first(), sharing(shop, bank))
		defer l.end()
		a, b := l.join(pod("shop", "web-0"), "1"), l.join(pod("bank", "web-0b"), "1")
		defer a.close()
		defer b.close()
		a.reportPool(bank)
		if got := l.ObservePool("bank", "db"); got.Sessions[0].Report != nil || got.Figures.InFlight != 0 {
			t.Errorf("observation = %+v, want nothing of another namespace's pod", got)
		}
	})
}

// A change of a condition of a pool is published at once.
func TestChangesOfAPoolAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pooled("shop", 1, 10)
		registry := prometheus.NewRegistry()
		l := lead(t, first(), sharing(p), func(c *Config) { c.Registerer = registry })
		defer l.end()
		time.Sleep(auditInterval / 2)
		published := func(why string, want bool) {
			t.Helper()
			got := false
			for over := time.After(2 * auditInterval); over != nil; {
				select {
				case name := <-l.PoolsChanged():
					if want := (types.NamespacedName{Namespace: "shop", Name: "db"}); name != want {
						t.Errorf("published %v, want %v", name, want)
					}
					got = true
				case <-over:
					over = nil
				}
			}
			if got != want {
				t.Errorf("%s: published: %t, want %t", why, got, want)
			}
		}
		h := l.join(pod("shop", "web-0"), "1")
		defer h.close()
		published("a pod acknowledged", true)
		h.reportPool(p)
		published("the first report", true)
		h.reportPool(p, func(r *fleetpb.PoolReport) { r.InFlight = 4 })
		published("a figure", false)
		h.reportPool(p, func(r *fleetpb.PoolReport) { r.Holders = 3 })
		published("another holder", true)
		h.reportPool(p, func(r *fleetpb.PoolReport) { r.Pool, r.CoordinatorError = "cache", "no route" })
		published("a pool that it was not sent", false)
		h.reportPool(p, func(r *fleetpb.PoolReport) { r.Fenced, r.Share, r.Ceiling, r.FencedTotal = true, 0, 0, 2 })
		published("a fence", true)
		h.reportPool(p, func(r *fleetpb.PoolReport) { r.FencedTotal, r.CoordinatorError = 2, "no route" })
		published("an error", true)
		h.reportPool(p, func(r *fleetpb.PoolReport) { r.FencedTotal, r.Occupied = 2, 11 })
		published("an overshoot", true)
		if f := l.ObservePool("shop", "db").Figures; f.Verdict != audit.Exceeded || f.Overshoot.Worst != 1 {
			t.Errorf("figures = %+v, want one request too many", f)
		}
		if got := total(t, registry, "weir_coordinator_fences_total"); got != 2 {
			t.Errorf("%v fences were counted, want 2", got)
		}
	})
}

func total(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return 0
}

// The credentials of a pool's coordinator travel like those of a store.
func TestCredentialsOfACoordinatorAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pooled("shop", 1, 10)
		p.Coordinator = policy.Store{Type: policy.RedisStore, Address: "redis:6379", Secret: "shop/redis", SecretVersion: "7"}
		resolver := sharing(p)
		resolver.keeps(passwords)
		l := lead(t, first(), resolver)
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		got := s.receiveConfig().GetSecrets()
		if len(got) != 1 || got[0].GetName() != "shop/redis" || string(got[0].GetData()["password"]) != "s3cr3t-7" {
			t.Errorf("secrets = %v, want those of the coordinator", got)
		}
	})
}

// TestAHolderOfSeveralPools beats for each and reports each. When one goes, it can let go of
// its share, and the figures of the others stay.
func TestAHolderOfSeveralPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, some := pooled("shop", 1, 10), pooled("shop", 2, 6)
		some.Name, some.Match = "search", []policy.Match{{Methods: []string{"GET"}}}
		resolver := sharing(all)
		resolver.matching(*some)
		l := lead(t, first(), resolver)
		defer l.end()
		h := l.join(pod("shop", "web-0"), "1")
		defer h.close()
		other := *h // the guard of the other pool
		for of, want := range map[*holder]struct {
			pool  *policy.Pool
			share int64
		}{h: {all, 10}, &other: {some, 6}} {
			if share := of.beat(want.pool); share.GetError() != "" || share.GetShare() != want.share {
				t.Errorf("of pool %s it has the share %v, want %d", want.pool.Name, share, want.share)
			}
			of.reportPool(want.pool, func(r *fleetpb.PoolReport) { r.InFlight = want.share })
		}
		inFlight := func(name string) int64 {
			o := l.ObservePool("shop", name)
			if o.Figures == nil || len(o.Sessions) != 1 {
				return -1
			}
			return o.Figures.InFlight
		}
		if a, b := inFlight("db"), inFlight("search"); a != 10 || b != 6 {
			t.Errorf("in flight are %d and %d, want 10 and 6", a, b)
		}
		resolver.matching()
		l.Refresh("shop")
		synctest.Wait()
		h.config()
		if share := other.beat(some, leaving); share.GetError() != "" {
			t.Errorf("it cannot let go of its share: %v", share)
		}
		if share := other.beat(some); share.GetError() == "" {
			t.Errorf("it has a share of a pool that it let go of: %v", share)
		}
		if a := inFlight("db"); a != 10 {
			t.Errorf("in flight of the other pool are %d, want 10", a)
		}
		h.reportPool(some)
		if o := l.ObservePool("shop", "search"); o.Figures != nil && o.Figures.InFlight != 0 {
			t.Errorf("a pool that does not apply has %d in flight", o.Figures.InFlight)
		}
	})
}
