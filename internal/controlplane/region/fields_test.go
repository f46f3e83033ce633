package region

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/testing/fieldtest"
	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

func TestEveryFieldOfABudgetReachesTheEngine(t *testing.T) {
	fixed := &policy.FederatedBudget{
		ID: "acme/world", Member: "eu-west", OnCoordinatorOutage: policy.BudgetRegionalOnly,
		Params: ledger.Params{
			Limit: 1, Window: 2, Strategy: 3, Slices: true, Block: 4, Keys: 10, Others: []limiter.Micros{11},
			Members:   []ledger.Member{{Name: "eu-west", Weight: 5, Nominal: 6, Kept: 7, Borrowing: 8}},
			Overrides: []ledger.Override{{Hash: "x", Limit: 9, Block: 10}},
		},
		Batch: policy.Batch{Type: policy.Fixed, Size: 9},
	}
	adaptive := *fixed
	adaptive.Batch.Type, adaptive.OnCoordinatorOutage = policy.Adaptive, policy.BudgetNominal
	fieldtest.Matter(t, []*policy.FederatedBudget{fixed, &adaptive}, func(b *policy.FederatedBudget) (any, error) {
		return engineConfig(b), nil
	},
		"FederatedBudget.Namespace", "FederatedBudget.Name", "FederatedBudget.Generation", // which the part reads
		"FederatedBudget.Hub", "FederatedBudget.Coordinator", "FederatedBudget.Escrow", // which places read
		"FederatedBudget.Key", "FederatedBudget.Overrides", // by which sidecars count
		"FederatedBudget.Additional", "FederatedBudget.Of", // which have parts of their own
		"Config.Patience", "Config.Timeout", "Config.Probe", "Config.Clock") // which are the same for all
}

func TestPlaces(t *testing.T) {
	redis := policy.Store{Type: policy.RedisStore, Address: "redis:1", Secret: "shop/redis", SecretVersion: "7"}
	postgres := policy.Store{Type: policy.PostgresStore, Address: "pg:1"}
	here := policy.Store{Type: policy.ControllerStore}
	hub := &policy.Hub{Endpoint: "hub:1", Secret: "shop/hub", SecretVersion: "8"}
	for name, tc := range map[string]struct {
		budget         policy.FederatedBudget
		ledger, escrow string
		credentials    policy.Store // of the ledger
	}{
		"this controller": {policy.FederatedBudget{Coordinator: here, Escrow: here}, "this controller", "", policy.Store{}},
		"a hub": {
			policy.FederatedBudget{Hub: hub, Coordinator: here, Escrow: redis},
			"the hub at hub:1", "redis at redis:1",
			policy.Store{Secret: "shop/hub", SecretVersion: "8"},
		},
		"a Redis":    {policy.FederatedBudget{Coordinator: redis, Escrow: here}, "redis at redis:1", "", redis},
		"a Postgres": {policy.FederatedBudget{Coordinator: postgres, Escrow: here}, "postgres at pg:1", "", postgres},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPart(tc.budget, logr.Discard())
			for l, want := range map[*line]string{p.ledger: tc.ledger, p.escrow: tc.escrow} {
				if l == nil {
					l = &line{} // where none is needed
				}
				if _, err := l.Enter(); l.Name != want || want != "" && !errors.Is(err, errNotYet) {
					t.Errorf("kept by %q (%v), want %q", l.Name, err, want)
				}
			}
			if got := ledgerOf(&tc.budget).credentials(); got != tc.credentials {
				t.Errorf("credentials %+v, want %+v", got, tc.credentials)
			}
		})
	}
}

// idle is an engine that only shows figures.
type idle struct {
	Engine
	stats federation.Stats
}

func (i *idle) Stats() federation.Stats { return i.stats }

// TestEverythingThatAConditionSaysTurnsAPart once.
func TestEverythingThatAConditionSaysTurnsAPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, e := newPart(own("acme/checkout", 100), logr.Discard()), &idle{stats: federation.Stats{Connected: true}}
		p.engine, p.seen.state = e, &ledger.State{}
		for what, change := range map[string]func(){
			"a term":       func() { e.stats.Epoch.Term++ },
			"learning":     func() { e.stats.Learning = true },
			"a clock":      func() { e.stats.Grant.Reason = ledger.Behind },
			"an escrow":    func() { e.stats.EscrowErr = errCut },
			"a problem":    func() { p.seen.err = errCut },
			"a generation": func() { p.budget.Generation++ },
			"an overshoot": func() { p.audit.Enter(overshot, 0) },
		} {
			time.Sleep(time.Second)
			if change(); !p.turned() {
				t.Errorf("%s is not written at once", what)
			}
			if time.Sleep(time.Second); p.turned() {
				t.Errorf("%s is written again", what)
			}
		}
	})
}

// overshot is a ledger in which more was admitted than the limit.
var overshot = ledger.State{Window: limiter.Second, Index: 8, Limit: 100, Closed: []ledger.Closed{
	{Index: 7, Limit: 100, Granted: 100, Usage: []ledger.MemberUsage{{Member: "a", Granted: 100, Admitted: 101, Reported: true, Complete: true}}},
}}

func TestTheSliceOfAMemberIsObserved(t *testing.T) {
	p := newPart(own("acme/checkout", 100), logr.Discard())
	p.engine = &idle{stats: federation.Stats{Slice: 7}}
	if got := p.observe().Slice; got != 7 {
		t.Errorf("a slice of %d is observed, want 7", got)
	}
}

func TestALineFailsWithTheLastCause(t *testing.T) {
	l := newLine(place{store: policy.Store{Type: policy.RedisStore, Address: "redis:1"}}, logr.Discard())
	for _, cause := range []error{errNotYet, errClosed} {
		l.Replace(nil, cause)
		_, err := ledgerLine{l}.Observe(t.Context(), "id")
		if away, is := errors.AsType[*store.UnavailableError](err); !is || away.Store != "redis at redis:1" || !errors.Is(err, cause) {
			t.Errorf("it fails with %v, want %s: %v", err, l.Name, cause)
		}
	}
}

func TestAPlaceIsOpenedWithItsCredentials(t *testing.T) {
	why := errors.New("the token is not valid")
	w := &world{t: t, secrets: map[string]string{"": "1"}, roots: map[string]*root{}}
	broken := New(Config{
		Source: w,
		Dial:   func(policy.Hub, map[string][]byte) (Hub, error) { return nil, why },
		Open:   func(policy.Store, map[string][]byte) (Server, error) { return Server{}, why },
	}, budget.Counts{}, nil)
	whole := New(Config{Source: w, Dial: w.dial, Open: w.open}, budget.Counts{}, nil)
	for name, to := range map[string]place{
		"a hub":   {hub: policy.Hub{Endpoint: "hub:1"}},
		"a store": {store: policy.Store{Type: policy.RedisStore, Address: "redis:1"}},
	} {
		_, err := broken.open(t.Context(), to)
		if _, is := errors.AsType[*CredentialsError](err); !is || !errors.Is(err, why) {
			t.Errorf("%s: error %v, want that of the credentials", name, err)
		}
		c, err := whole.open(t.Context(), to)
		if err != nil || c.place != to || c.ledger == nil || (c.hub != nil) != (name == "a hub") || (c.escrow != nil) != (name == "a store") {
			t.Errorf("%s is opened as %+v, %v", name, c, err)
		}
	}
}
