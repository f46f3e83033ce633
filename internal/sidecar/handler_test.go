package sidecar

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
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
			if _, err := p.adopt(data); !errors.Is(err, errLacking) {
				t.Fatalf("got error %v", err)
			}
			if len(p.Pools()) > 0 || len(p.Limits()) > 0 {
				t.Errorf("pool %v and %d limits are in force", p.Pools(), len(p.Limits()))
			}
		})
	}
}
