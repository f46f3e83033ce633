package coordinator

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	wire "github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/internal/controlplane/region"
	"github.com/weir-dev/weir/internal/fleetpb"
	hub "github.com/weir-dev/weir/pkg/federation/coordinator/memory"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// A remote is a hub some way away. One process's end does not seal it for others.
type remote struct{ *hub.Coordinator }

func (remote) Seal(context.Context) {}

func (r remote) Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	time.Sleep(5 * time.Millisecond)
	g, err := r.Coordinator.Apply(ctx, id, p, c)
	time.Sleep(5 * time.Millisecond)
	return g, err
}

// A membership is the one budget of a cluster.
type membership policy.FederatedBudget

func (b membership) FederatedBudgets(context.Context) ([]policy.FederatedBudget, error) {
	return []policy.FederatedBudget{policy.FederatedBudget(b)}, nil
}

func (membership) Secret(context.Context, policy.Store) (map[string][]byte, error) { return nil, nil }

func (membership) Keep(context.Context, policy.Hub, wire.Renewal) error { return nil }

// A cluster is a member of the budget acme/checkout, with sidecars under overload.
type cluster struct {
	*leader
	p        policy.Policy
	sidecars []*sidecar
	admitted []map[int64]int64 // by sidecar and window
	refused  []map[int64]int64
}

const worldLimit = 100 // units a second, over all clusters

func newCluster(t *testing.T, member string, to remote, sidecars int) *cluster {
	t.Helper()
	b := membership{
		ID: "acme/checkout", Namespace: "shop", Name: "world", Generation: 1, Member: member,
		Params: ledger.Params{Limit: worldLimit, Window: limiter.Second, Members: []ledger.Member{
			{Name: "eu", Weight: 3, Borrowing: -1}, {Name: "us", Weight: 1, Borrowing: -1},
		}},
		Coordinator: policy.Store{Type: policy.ControllerStore}, Escrow: policy.Store{Type: policy.ControllerStore},
		Batch: policy.Batch{Type: policy.Adaptive, Size: 8},
	}
	c := &cluster{p: federated(limited("shop", 1, worldLimit, limiter.Second), b.ID)}
	c.leader = lead(t, &memoryTerms{}, publishing(c.p), func(cfg *Config) {
		cfg.Budgets = func(counts budget.Counts, changed func(types.NamespacedName), _ bool) Budgets {
			return region.New(region.Config{Source: b, Cluster: member, Local: to, Log: logr.Discard()}, counts, changed)
		}
	})
	for i := range sidecars {
		s := c.connect(pod("shop", fmt.Sprintf("web-%d", i)), "1")
		s.config()
		c.sidecars = append(c.sidecars, s)
		c.admitted, c.refused = append(c.admitted, map[int64]int64{}), append(c.refused, map[int64]int64{})
	}
	return c
}

// ask has every sidecar ask for a few units and admit all of them.
func (c *cluster) ask(units int64) {
	for i, s := range c.sidecars {
		reply := s.lease(c.p, c.p.Limits[0], want(units))
		if reply.GetGranted() > 0 {
			c.admitted[i][reply.GetWindows()[0].GetIndex()] += reply.GetGranted()
		} else {
			c.refused[i][time.Now().Unix()] += units
		}
	}
}

// reportAll has every sidecar report what it counted, of windows that are over for good.
func (c *cluster) reportAll() {
	over := time.Now().Unix() - 1
	for i, s := range c.sidecars {
		r := &fleetpb.LimitReport{Namespace: "shop", Policy: "checkout", Limit: "all", Generation: 1}
		for index := over - 3; index <= over+1; index++ {
			r.Windows = append(r.Windows, &fleetpb.WindowReport{
				Windows: []*fleetpb.Window{{Rate: &fleetpb.Rate{Limit: worldLimit, WindowMicros: int64(limiter.Second)}, Index: index}},
				Final:   index < over, Admitted: c.admitted[i][index], Refused: c.refused[i][index],
			})
			r.AdmittedTotal += c.admitted[i][index]
		}
		s.report(r)
	}
}

func (c *cluster) close() {
	for _, s := range c.sidecars {
		s.close()
	}
	c.end()
}

// sum returns what the cluster admitted of a window.
func (c *cluster) sum(index int64) (sum int64) {
	for _, windows := range c.admitted {
		sum += windows[index]
	}
	return sum
}

// TestTwoClustersShareABudget runs two clusters on one hub, each with more demand than
// both may admit. No second admits more than the limit, hardly any less, and the audit of
// each cluster says exactly what the sidecars of both admitted.
func TestTwoClustersShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := func() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }
		root := hub.New(hub.Options{Clock: clock, Term: 1, First: true})
		eu, us := newCluster(t, "eu", remote{root}, 2), newCluster(t, "us", remote{root}, 2)
		defer eu.close()
		defer us.close()
		next()
		first := time.Now().Unix() + 1
		seen := map[int64]ledger.Closed{}
		for range 200 {
			eu.ask(3)
			us.ask(3)
			time.Sleep(90 * time.Millisecond)
			if time.Now().Nanosecond() > 800e6 {
				eu.reportAll()
				us.reportAll()
				time.Sleep(time.Second - time.Duration(time.Now().Nanosecond()))
			}
			s, err := root.Observe(t.Context(), "acme/checkout")
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range s.Closed {
				seen[c.Index] = c
			}
		}
		last := time.Now().Unix() - 1
		if last-first < 10 {
			t.Fatalf("only %d seconds passed", last-first)
		}
		complete, admitted := 0, int64(0)
		for index := first; index < last; index++ {
			a, b := eu.sum(index), us.sum(index)
			admitted += a + b
			if a+b > worldLimit {
				t.Errorf("second %d: %d and %d were admitted, more than %d", index-first, a, b, worldLimit)
			}
			for _, u := range seen[index].Usage {
				if !u.Complete {
					continue
				}
				complete++
				if want := map[string]int64{"eu": a, "us": b}[u.Member]; u.Admitted != want {
					t.Errorf("second %d: %s reported %d, its sidecars admitted %d", index-first, u.Member, u.Admitted, want)
				}
			}
		}
		if least := worldLimit * (last - first) * 8 / 10; admitted < least {
			t.Errorf("only %d units were admitted, want at least %d", admitted, least)
		}
		if complete < int(last-first) {
			t.Errorf("only %d reports of two times %d seconds are complete", complete, last-first)
		}
		for _, c := range []*cluster{eu, us} {
			got := c.ObserveBudget("shop", "world")
			if f := got.Figures; got.Link.Problem != "" || f.Verdict != audit.Measured || f.Overshoot == nil || f.Overshoot.Worst != 0 {
				t.Errorf("observed %+v, overshoot %+v", got, got.Figures.Overshoot)
			}
		}
	})
}
