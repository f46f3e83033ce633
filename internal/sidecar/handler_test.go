package sidecar

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/policy/revision"
	"github.com/weir-dev/weir/pkg/twotier"
)

// lacking opens no stores.
type lacking struct{}

var errLacking = errors.New("there is no such store")

func (lacking) Open(policy.Store) (twotier.Store, error) { return nil, errLacking }

func (lacking) Coordinator(policy.Store) (concurrency.Coordinator, error) { return nil, errLacking }
func (lacking) Budget() twotier.Store                                     { return nil }
func (lacking) Retain(map[policy.Store]bool)                              {}
func (lacking) limiter(twotier.Config, twotier.Store) (none enforce.Limiter, err error) {
	return none, nil
}

// TestASnapshotIsPutInForceAsAWholeOrNotAtAll has one with a pool that can be kept and
// limits that cannot, and the other way round.
func TestASnapshotIsPutInForceAsAWholeOrNotAtAll(t *testing.T) {
	data, _, _ := poolSnapshot(t, 1)
	snapshot, err := policy.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	snapshot.Policies = []policy.Policy{{
		Namespace: "shop", Name: "checkout", Mode: policy.Enforce, OnStoreUnavailable: policy.Deny,
		Store: policy.Store{Type: policy.ControllerStore}, Consistency: policy.Consistency{Mode: policy.Strict},
		Limits: []policy.Limit{{Name: "all", Rates: []limiter.Rate{{Limit: 1, Window: limiter.Second}}}},
	}}
	if data, _, err = policy.Encode(snapshot); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	for name, spoil := range map[string]func(*process){
		"the pool is good": func(p *process) {
			p.enforcer = enforce.New(enforce.Config{Namespace: "shop", Mode: enforce.Enforce, Log: log, Stores: lacking{}, NewLimiter: lacking{}.limiter})
		},
		"the limits are good": func(p *process) {
			p.pools = pools.New(pools.Config{Holder: "uid/nonce", Mode: enforce.Enforce, Coordinators: lacking{}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := newProcess(config{namespace: "shop", mode: enforce.Enforce}, log)
			if err != nil {
				t.Fatal(err)
			}
			spoil(p)
			defer p.release(t.Context())
			if err := p.adoptWhole(policy.Version(data), data); !errors.Is(err, errLacking) {
				t.Fatalf("got error %v", err)
			}
			if len(p.Pools()) > 0 || len(p.Limits()) > 0 {
				t.Errorf("pool %v and %d limits are in force", p.Pools(), len(p.Limits()))
			}
		})
	}
}

// TestAnEditIsMadeOfTheVersionInForce, and of no other: then all stays as it is, and the whole is asked for.
func TestAnEditIsMadeOfTheVersionInForce(t *testing.T) {
	p, err := newProcess(config{namespace: "shop", mode: enforce.Enforce}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.release(t.Context())
	h := handler{p}
	first, second, third := of(t, 1, "a", "b"), of(t, 2, "a"), of(t, 3, "a")
	if err := h.Edit(editBetween(t, first, second), nil, false); !errors.Is(err, revision.ErrBase) || h.version() != "" {
		t.Errorf("of nothing version %q is made, error %v", h.version(), err)
	}
	if err := h.Apply(policy.Version(first), first, nil); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		from, to []byte
		made     bool
	}{{second, third, false}, {first, second, true}, {first, third, false}, {second, third, true}} {
		before := h.version()
		err := h.Edit(editBetween(t, step.from, step.to), nil, false)
		want := before
		if step.made {
			want = policy.Version(step.to)
		}
		if h.version() != want || errors.Is(err, revision.ErrBase) == step.made || (err == nil) != step.made {
			t.Errorf("version %s is in force after %s, error %v", h.version(), before, err)
		}
	}
	if set, _ := p.Set(); set.Lookup("shop", "a", "all").Policy.Generation != 3 || set.Lookup("shop", "b", "all") != nil {
		t.Errorf("in force is %+v", set.Snapshot)
	}
}

// TestAnEditInAModeThatRefusesNothing is in force, and reported as such.
func TestAnEditInAModeThatRefusesNothing(t *testing.T) {
	p, err := newProcess(config{namespace: "shop", mode: enforce.Shadow}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.release(t.Context())
	h := handler{p}
	first, second := of(t, 1, "a"), of(t, 2, "a")
	for _, err := range []error{h.Apply(policy.Version(first), first, nil), h.Edit(editBetween(t, first, second), nil, false)} {
		if err == nil || errors.Is(err, revision.ErrBase) || !strings.Contains(err.Error(), "mode is shadow") {
			t.Errorf("the controller hears %v", err)
		}
	}
	if set, _ := p.Set(); set.Lookup("shop", "a", "all").Policy.Generation != 2 {
		t.Errorf("in force is %+v", set.Snapshot)
	}
}

// TestCredentialsStayUnlessAnEditRenewsThem: a store that an edit adds opens with those of the version before.
func TestCredentialsStayUnlessAnEditRenewsThem(t *testing.T) {
	in := func(addresses ...string) []byte {
		s := policy.Snapshot{Cluster: "test"}
		for i, address := range addresses {
			s.Policies = append(s.Policies, policy.Policy{
				Namespace: "shop", Name: fmt.Sprint("p", i), Mode: policy.Enforce, OnStoreUnavailable: policy.Deny,
				Store:       policy.Store{Type: policy.PostgresStore, Address: address, Database: "weir", Secret: "shop/db", SecretVersion: "1"},
				Consistency: policy.Consistency{Mode: policy.Strict},
				Limits:      []policy.Limit{{Name: "all", Rates: []limiter.Rate{{Limit: 1, Window: limiter.Second}}}},
			})
		}
		data, _, err := policy.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	known := []*fleetpb.Secret{{Name: "shop/db", Version: "1", Data: map[string][]byte{"username": []byte("app")}}}
	for name, tc := range map[string]struct {
		first, second []*fleetpb.Secret
		renewed       bool
		lacking       bool // the second store lacks them
	}{
		"they stay":        {first: known},
		"they are lost":    {first: known, renewed: true, lacking: true},
		"they are renewed": {second: known, renewed: true},
		"there are none":   {lacking: true},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := newProcess(config{namespace: "shop", mode: enforce.Enforce}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer p.release(t.Context())
			h := handler{p}
			one, both := in("127.0.0.1:1"), in("127.0.0.1:1", "127.0.0.2:1")
			if err := h.Apply(policy.Version(one), one, tc.first); err != nil {
				t.Fatal(err)
			}
			if err := h.Edit(editBetween(t, one, both), tc.second, tc.renewed); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the store that was added is not asked", func() bool {
				if _, err := p.enforcer.Check(t.Context(), enforce.Query{Policy: "p1", Limit: "all", Cost: 1}); err != nil {
					t.Fatal(err)
				}
				for _, l := range p.Limits() {
					if l.Policy == "p1" && l.Stats.CutOff != nil {
						return strings.Contains(l.Stats.CutOff.Error(), "have not arrived") == tc.lacking
					}
				}
				return false
			})
		})
	}
}

// editBetween returns what makes one encoded snapshot of the other.
func editBetween(t *testing.T, from, to []byte) revision.Edit {
	t.Helper()
	var of [2]*revision.Content
	for i, data := range [][]byte{from, to} {
		var err error
		if of[i], err = revision.ContentOf(data); err != nil {
			t.Fatal(err)
		}
	}
	e, err := revision.Between(of[0], of[1])
	if err != nil {
		t.Fatal(err)
	}
	e.Base, e.Version = policy.Version(from), policy.Version(to)
	return e
}
