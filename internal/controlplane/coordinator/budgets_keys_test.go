package coordinator

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/records"
	wire "github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/internal/controlplane/region"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	hub "github.com/weir-dev/weir/pkg/federation/coordinator/memory"
	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// perUser is how many requests of a user all clusters together admit in a second, forVIP of one
// and forGuest of another that have limits of their own.
const (
	perUser, forVIP, forGuest = 10, 25, 3
	vip, guest                = "vip", "guest"
)

// limitOf returns the limit of a user.
func limitOf(user string) int {
	switch user {
	case vip:
		return forVIP
	case guest:
		return forGuest
	}
	return perUser
}

// usersObjects returns the objects that a user applies in each cluster: a budget by user, and a
// policy that draws from it.
func usersObjects(maxKeys int32) (*v1alpha1.FederatedBudget, *v1alpha1.RateLimitPolicy) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "users", Generation: 1}
	b := &v1alpha1.FederatedBudget{ObjectMeta: meta, Spec: v1alpha1.FederatedBudgetSpec{
		ID: "shop/users", Rate: v1alpha1.BudgetRate{Limit: perUser, Window: "1s"},
		Key: &v1alpha1.BudgetKey{
			Parts:     []v1alpha1.KeyPart{{Type: v1alpha1.HeaderPart, Header: &v1alpha1.HeaderKey{Name: "x-user"}}},
			OnMissing: v1alpha1.OnMissingReject, MaxKeys: maxKeys,
			Overrides: []v1alpha1.BudgetOverride{
				{Values: []v1alpha1.KeyValue{{Parts: []string{vip}}}, Limit: forVIP},
				{Values: []v1alpha1.KeyValue{{Parts: []string{guest}}}, Limit: forGuest},
			},
		},
		Members:             []v1alpha1.BudgetMember{{Name: "eu", Weight: 1}, {Name: "us", Weight: 1}},
		Allocation:          v1alpha1.FirstComeAllocation,
		Coordinator:         v1alpha1.BudgetCoordinator{Type: v1alpha1.KubernetesCoordinator},
		Escrow:              v1alpha1.BudgetEscrow{Type: v1alpha1.ControllerEscrow},
		Batch:               v1alpha1.BudgetBatch{Type: v1alpha1.AdaptiveBatch, Size: 16},
		OnCoordinatorOutage: v1alpha1.OnBudgetOutage{Action: v1alpha1.BudgetFailClosedAction},
	}}
	p := &v1alpha1.RateLimitPolicy{ObjectMeta: meta, Spec: v1alpha1.RateLimitPolicySpec{
		Mode:               v1alpha1.EnforceMode,
		Consistency:        v1alpha1.Consistency{Mode: v1alpha1.LeasedMode},
		OnStoreUnavailable: v1alpha1.OnStoreUnavailable{Action: v1alpha1.LocalShareAction},
		Limits: []v1alpha1.Limit{{
			Name: "per-user", Algorithm: v1alpha1.FixedWindowAlgorithm, Combine: v1alpha1.CombineAll,
			Scope: v1alpha1.FederatedScope, BudgetRef: &v1alpha1.BudgetReference{Name: b.Name},
		}},
	}}
	p.Spec.Store.Type = v1alpha1.ControllerStore
	return b, p
}

var errWayCut = &store.UnavailableError{Store: "the hub", Cause: errors.New("cut off")}

// A way leads from a cluster to the hub. It can be cut.
type way struct {
	remote
	audits *wire.Audits
	cut    atomic.Bool
}

func (w *way) Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	if w.cut.Load() {
		return ledger.Grant{}, errWayCut
	}
	return w.remote.Apply(ctx, id, p, c)
}

func (w *way) ApplyKeys(ctx context.Context, id string, p ledger.Params, r keys.Request) (keys.Reply, error) {
	time.Sleep(5 * time.Millisecond)
	if w.cut.Load() {
		return keys.Reply{}, errWayCut
	}
	reply, err := w.remote.ApplyKeys(ctx, id, p, r)
	time.Sleep(5 * time.Millisecond)
	return reply, err
}

func (w *way) Observe(ctx context.Context, id string) (ledger.State, error) {
	if w.cut.Load() {
		return ledger.State{}, errWayCut
	}
	return w.remote.Observe(ctx, id)
}

func (w *way) ReportKeys(ctx context.Context, id, member string, p ledger.Params, row *budgetaudit.ValueRow) (budgetaudit.Answer, error) {
	if w.cut.Load() {
		return budgetaudit.Answer{}, errWayCut
	}
	return w.audits.ReportKeys(ctx, id, member, p, row)
}

// A guard is the real enforcer of a sidecar behind its real client.
type guard struct {
	client   *fleet.Client
	breaker  *twotier.Breaker
	enforcer *enforce.Enforcer
}

var _ interface {
	fleet.Handler
	enforce.Stores
} = (*guard)(nil)

func (g *guard) Open(policy.Store) (twotier.Store, error) { return g.breaker, nil }

func (g *guard) Budget() twotier.Store { return twotier.NewBreaker(g.client) }

func (*guard) Retain(map[policy.Store]bool) {}

func (g *guard) InForce() (version string, holders []*fleetpb.Holders_Count) {
	_, version = g.enforcer.Set()
	return version, g.enforcer.Holders()
}

func (g *guard) Apply(version string, snapshot []byte, _ []*fleetpb.Secret) error {
	decoded, err := policy.Decode(snapshot)
	if err != nil {
		return err
	}
	set, err := policy.Compile(decoded)
	if err != nil {
		return err
	}
	return g.enforcer.Apply(set, version)
}

func (g *guard) SetHolders(namespace, name string, n int64) {
	g.enforcer.SetHolders(namespace, name, n)
}

func (*guard) Reached(string, store.Reached) {}

func (g *guard) Report(now time.Time, session uint64) *fleetpb.Report {
	return &fleetpb.Report{Limits: g.enforcer.Report(now, session)}
}

func (g *guard) Audit(q *fleetpb.AuditQuery) *fleetpb.AuditReply { return g.enforcer.Audit(q) }

func (g *guard) Promise(now, until limiter.Instant) (limiter.Instant, bool) {
	return g.breaker.Promise(now, until)
}

// asks lets a request of a user be decided.
func (g *guard) asks(t *testing.T, user string) enforce.Verdict {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	if user != "" {
		r.Header.Set("X-User", user)
	}
	v, err := g.enforcer.Decide(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A keyedCluster is a member of the budget by user.
type keyedCluster struct {
	*leader
	way      *way
	guards   []*guard
	admitted map[string]map[int64]int // by user and window
	stop     func()
}

// newKeyedCluster starts a controller and sidecars that enforce what the objects say.
func newKeyedCluster(t *testing.T, member, dir string, to *way, maxKeys int32, sidecars int) *keyedCluster {
	t.Helper()
	object, drawing := usersObjects(maxKeys)
	b, err := translate.Budget(object, member)
	if err != nil {
		t.Fatal(err)
	}
	p, err := translate.Policy(drawing, func(string) (policy.FederatedBudget, error) { return b, nil })
	if err != nil {
		t.Fatal(err)
	}
	c := &keyedCluster{way: to, admitted: map[string]map[int64]int{}}
	c.leader = lead(t, &memoryTerms{left: records.Handover{First: true}}, publishing(p), func(cfg *Config) {
		cfg.Budgets = func(counts budget.Counts, changed func(types.NamespacedName), _ bool) Budgets {
			return region.New(region.Config{Source: membership(b), Cluster: member, Local: to, Auditor: to, Log: logr.Discard()}, counts, changed)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i := range sidecars {
		g := newGuard(t, c.leader, pod("shop", fmt.Sprintf("%s-%d", member, i)), dir)
		c.guards = append(c.guards, g)
		running.Go(func() { g.client.Run(ctx, g) })
	}
	c.stop = func() {
		for _, g := range c.guards {
			g.enforcer.Close(context.Background())
		}
		cancel()
		running.Wait()
		c.end()
	}
	return c
}

func newGuard(t *testing.T, l *leader, id podauth.Identity, dir string) *guard {
	t.Helper()
	file := filepath.Join(dir, id.Pod)
	if err := os.WriteFile(file, []byte(tokenOf(id)), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := fleet.New(fleet.Config{
		Address: serviceAddress, ServerName: "fleet", TokenFile: file, Log: slog.New(slog.DiscardHandler),
		Dial:     func(ctx context.Context, _ string) (net.Conn, error) { return l.listener.DialContext(ctx) },
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}),
		Identity: fleet.Identity{Namespace: id.Namespace, Pod: id.Pod, PodUID: id.PodUID, BootNonce: "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	g := &guard{client: client, breaker: twotier.NewBreaker(client)}
	g.enforcer = enforce.New(enforce.Config{
		Namespace: "shop", Mode: enforce.Enforce, Stores: g, Log: slog.New(slog.DiscardHandler),
		NewLimiter: func(c twotier.Config, s twotier.Store) (enforce.Limiter, error) { return twotier.New(c, s) },
	})
	return g
}

// asks has every sidecar of the cluster decide a request of a user.
func (c *keyedCluster) asks(user string) {
	for _, g := range c.guards {
		if g.asks(c.t, user).Allowed {
			if c.admitted[user] == nil {
				c.admitted[user] = map[int64]int{}
			}
			c.admitted[user][time.Now().Unix()]++
		}
	}
}

// twoKeyedClusters runs f over two clusters on one hub, from the beginning of a window on.
func twoKeyedClusters(t *testing.T, maxKeys int32, f func(t *testing.T, eu, us *keyedCluster)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		clock := func() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }
		root, audits := remote{hub.New(hub.Options{Clock: clock, Term: 1, First: true})}, wire.NewAudits()
		eu := newKeyedCluster(t, "eu", dir, &way{remote: root, audits: audits}, maxKeys, 2)
		defer eu.stop()
		us := newKeyedCluster(t, "us", dir, &way{remote: root, audits: audits}, maxKeys, 2)
		defer us.stop()
		time.Sleep(time.Second)
		next()
		f(t, eu, us)
	})
}

// TestTwoClustersShareTheLimitOfEachUser by real controllers, regions and sidecars, of what users
// apply. Each user has the whole limit over both clusters, its own where it has one, and none has
// more, also while one cluster is cut off and after it is back.
func TestTwoClustersShareTheLimitOfEachUser(t *testing.T) {
	twoKeyedClusters(t, 10_000, func(t *testing.T, eu, us *keyedCluster) {
		const healed, cutFrom, cutTo = 25, 8, 14
		first, seldom := time.Now().Unix(), 0
		for passed := int64(0); passed < healed; passed = time.Now().Unix() - first {
			us.way.cut.Store(passed >= cutFrom && passed < cutTo)
			for _, c := range []*keyedCluster{eu, us} {
				c.asks("alice") // in both clusters
				c.asks(vip)
				c.asks(guest)
				seldom++
				c.asks(fmt.Sprint("seldom", seldom)) // two requests, one of each sidecar
			}
			us.asks("bob") // in one
			time.Sleep(40 * time.Millisecond)
		}
		sum := map[string]int{}
		for user, here := range eu.admitted {
			for index := range here {
				us.check(t, user, index, here[index])
				sum[user] += here[index]
			}
		}
		for user, here := range us.admitted {
			for index := range here {
				eu.check(t, user, index, here[index])
				sum[user] += here[index]
			}
		}
		for _, user := range []string{"alice", vip, guest} {
			if least := limitOf(user) * healed * 8 / 10; sum[user] < least {
				t.Errorf("%d requests of %s, in both clusters, were admitted, want at least %d", sum[user], user, least)
			}
		}
		if most, least := perUser*healed, perUser*(healed-(cutTo-cutFrom)-2)*8/10; sum["bob"] < least || sum["bob"] > most {
			t.Errorf("%d requests of a user of one cluster were admitted, want %d to %d", sum["bob"], least, most)
		}
		if served := len(eu.admitted) - 3; served < seldom*4/10 {
			t.Errorf("of %d users who ask seldom %d were served, though each has the whole limit", seldom/2, served)
		}
		for index := first + cutFrom + 1; index < first+cutTo; index++ {
			if n := us.admitted["alice"][index]; n > 0 {
				t.Errorf("%d requests were admitted by a cluster that is cut off and fails closed", n)
			}
		}
		if v := eu.guards[0].asks(t, ""); v.Allowed || v.Refusal.Cause != enforce.KeyMissing {
			t.Errorf("a request without the key: %+v", v)
		}
		for range 20 { // until the last windows are reported and measured
			eu.asks("alice")
			us.asks("alice")
			time.Sleep(time.Second)
		}
		for _, c := range []*keyedCluster{eu, us} {
			got := c.ObserveBudget("shop", "users")
			f := got.Figures
			if got.Link.Problem != "" || f.Verdict != audit.Measured || f.Overshoot == nil || f.Overshoot.Worst != 0 || f.Overshoot.Bound != 0 || f.UnderUtilization == nil {
				t.Errorf("observed %+v, overshoot %+v, under-utilization %+v", got, f.Overshoot, f.UnderUtilization)
			}
			if got.Keys.InUse < 1 || got.Keys.InCluster < 1 || got.Keys.Full {
				t.Errorf("of the values is known %+v", got.Keys)
			}
			if o := c.Observe("shop", "users"); len(o.Limits) != 1 || o.Limits[0].Overshoot == nil || o.Limits[0].Overshoot.Worst != 0 || o.Limits[0].ActiveKeys < 1 {
				t.Errorf("of the policy is known %+v", o.Limits)
			}
		}
	})
}

// check fails where both clusters together admitted more of a user in a window than the limit.
func (c *keyedCluster) check(t *testing.T, user string, index int64, there int) {
	t.Helper()
	if here, most := c.admitted[user][index], limitOf(user); here+there > most {
		t.Errorf("in window %d %s was admitted %d here and %d there, more than %d", index, user, here, there, most)
	}
}

// TestUsersThatAreTooManyShareLimits: those beyond maxKeys have one limit for each 8 of maxKeys, and
// both clusters say so.
func TestUsersThatAreTooManyShareLimits(t *testing.T) {
	const maxKeys, users = 8, 60
	twoKeyedClusters(t, maxKeys, func(t *testing.T, eu, us *keyedCluster) {
		for range 8 {
			for i := range users {
				eu.asks(fmt.Sprint("eu", i))
				us.asks(fmt.Sprint("us", i))
			}
			next()
		}
		byWindow := map[int64]int{}
		for _, c := range []*keyedCluster{eu, us} {
			for _, windows := range c.admitted {
				for index, n := range windows {
					byWindow[index] += n
				}
			}
		}
		for index, n := range byWindow {
			if most := perUser * (maxKeys + maxKeys/8); n > most {
				t.Errorf("in window %d %d requests were admitted, want at most %d of %d values and one more limit", index, n, most, maxKeys)
			}
		}
		for _, c := range []*keyedCluster{eu, us} {
			if got := c.ObserveBudget("shop", "users").Keys; !got.Full || got.InUse < maxKeys || got.InUse > maxKeys+maxKeys/8 {
				t.Errorf("of the values is known %+v, want %d of them and one counter that others share", got, maxKeys)
			}
		}
	})
}
