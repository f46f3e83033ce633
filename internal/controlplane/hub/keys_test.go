package hub

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/weir-dev/weir/internal/federationpb"
	"github.com/weir-dev/weir/pkg/federation/keyed"
	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

var _ keyed.Coordinator = (*Client)(nil)

// asksFor returns a request for units of keys.
func asksFor(units int64, hashes ...string) keys.Request {
	r := keys.Request{Member: "another"} // the certificate counts
	for _, h := range hashes {
		r.Asks = append(r.Asks, keys.KeyAsk{Hash: h, Ask: keys.Ask{Min: 1, Want: units}})
	}
	return r
}

// values has the budget of the world have a key.
func (w *world) values() ledger.Params {
	p, _ := w.budgets.Budget(budgetID)
	p.Keys = 1000
	w.budgets.set(budgetID, p)
	return p
}

// TestMembersShareTheValuesOfAKey asks over real connections from two members, with what is
// set aside in a real API server.
func TestMembersShareTheValuesOfAKey(t *testing.T) {
	w := newWorld(t).start(t)
	p := w.values()
	b, c := w.open(t, w.secret(t, "b")), w.open(t, w.secret(t, "c"))
	r, err := b.ApplyKeys(t.Context(), budgetID, p, asksFor(1, "x"))
	if err != nil || r.Reason != ledger.Amnesia {
		t.Fatalf("the first window: %+v, %v", r, err)
	}
	w.clock.Step(time.Second)
	sum := map[string]int64{}
	for range 60 {
		for from, hashes := range map[*Client][]string{b: {"x", "y"}, c: {"y", "z"}} {
			r, err := from.ApplyKeys(t.Context(), budgetID, p, asksFor(9, hashes...))
			if err != nil || r.Reason != ledger.Granted || r.Limit != 100 {
				t.Fatalf("%+v, %v", r, err)
			}
			for i, g := range r.Grants {
				sum[hashes[i]] += g.Units
			}
		}
	}
	if diff := cmp.Diff(map[string]int64{"x": 100, "y": 100, "z": 100}, sum); diff != "" {
		t.Errorf("units of each value (-want +got)\n%s", diff)
	}
	state, err := c.Observe(t.Context(), budgetID)
	if err != nil || len(state.Accounts) != 0 {
		t.Errorf("%+v, %v, want no units without a key", state, err)
	}
}

// TestOnlyOneHasAKey asks a hub whose object has a key as one whose has none, and the other
// way round.
func TestOnlyOneHasAKey(t *testing.T) {
	w := newWorld(t).start(t)
	without, _ := w.budgets.Budget(budgetID)
	c := w.open(t, w.secret(t, "b"))
	_, err := c.ApplyKeys(t.Context(), budgetID, without, asksFor(1, "x"))
	requireRefused(t, err, w.address, Mismatched, "give both objects the same spec.rate.window, spec.additionalRates and spec.key")
	with := w.values()
	_, err = c.Apply(t.Context(), budgetID, without, lease("b", 1, 1))
	requireRefused(t, err, w.address, Mismatched, "give both objects the same spec.rate.window, spec.additionalRates and spec.key")
	with.Window++
	_, err = c.ApplyKeys(t.Context(), budgetID, with, asksFor(1, "x"))
	requireRefused(t, err, w.address, Mismatched, "give both objects the same spec.rate.window, spec.additionalRates and spec.key")
	with.Window--
	_, err = c.ApplyKeys(t.Context(), budgetID, with, keys.Request{})
	requireRefused(t, err, w.address, Invalid, "of the same version")
	_, err = c.ApplyKeys(t.Context(), "shop/other", with, asksFor(1, "x"))
	requireRefused(t, err, w.address, UnknownBudget, "it keeps no budget of this id")
	report := ledger.Command{Op: ledger.Report, Member: "b", Holder: "h", Slice: ledger.NoSlice}
	if g, err := c.Apply(t.Context(), budgetID, with, report); err != nil || g.Reason != ledger.Granted {
		t.Errorf("a command that asks for no units: %+v, %v", g, err)
	}
}

// nobody is a hub that answers for keys what none does.
type nobody struct{ federationpb.FederationClient }

func (nobody) ApplyKeys(context.Context, *federationpb.ApplyKeysRequest, ...grpc.CallOption) (*federationpb.ApplyKeysResponse, error) {
	return &federationpb.ApplyKeysResponse{Reason: federationpb.Grant_REASON_GRANTED, Grants: []*federationpb.KeyGrant{{Units: -1}}}, nil
}

func TestAnAnswerForKeysThatNoHubGives(t *testing.T) {
	c := &Client{connection: &connection{endpoint: "hub:15040", calls: nobody{}}}
	_, err := c.ApplyKeys(t.Context(), budgetID, params(100, "a"), asksFor(1, "x"))
	if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.Reason != Invalid {
		t.Errorf("error %v, want a refusal", err)
	}
}

// TestLargestRequestFits in what the server takes.
func TestLargestRequestFits(t *testing.T) {
	r := asksFor(1 << 40)
	for i := range keys.MaxAsks {
		r.Asks = append(r.Asks, keys.KeyAsk{Hash: fmt.Sprintf("%0*d", keys.MaxHash, i), Ask: keys.Ask{Min: 1 << 40, Want: 1 << 40}})
	}
	if n := proto.Size(keysTo(r)); n > maxCommand-4096 {
		t.Errorf("the largest request has %d bytes, and %d are taken", n, maxCommand)
	}
}

// FuzzKeys decodes what members may send: what is valid is what was sent.
func FuzzKeys(f *testing.F) {
	data, err := proto.Marshal(keysTo(asksFor(3, "x", "y")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var in federationpb.ApplyKeysRequest
		if proto.Unmarshal(data, &in) != nil {
			return
		}
		r := keysFrom(&in)
		r.Member = "a"
		if r.Validate() != nil {
			return
		}
		again := keysFrom(keysTo(r))
		again.Member = "a"
		if diff := cmp.Diff(r, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}
