package hub

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-dev/weir/internal/federationpb"
	"github.com/weir-dev/weir/internal/testing/fieldtest"
	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// TestEveryFieldOfACommandIsSent but what is of the coordinator itself, and what a member
// vouches for where no hub remembers which budgets there were.
func TestEveryFieldOfACommandIsSent(t *testing.T) {
	inputs := func() (list []*ledger.Command) {
		for _, c := range everyCommand {
			list = append(list, &c)
		}
		return list
	}
	fieldtest.Matter(t, inputs(), func(c *ledger.Command) (any, error) { return proto.Marshal(commandTo(*c)) },
		"Command.Memory", "Command.Born", "Command.List")
	var sent []*federationpb.Command
	for _, c := range everyCommand {
		sent = append(sent, commandTo(c))
	}
	fieldtest.Matter(t, sent, func(c *federationpb.Command) (any, error) { return commandFrom(c) },
		"Command.Memory", "Command.Born", "Command.List")
}

// TestEveryFieldOfARequestForKeysIsSent but the member, whom the connection proves.
func TestEveryFieldOfARequestForKeysIsSent(t *testing.T) {
	in := &keys.Request{Member: "a", Asks: []keys.KeyAsk{{Hash: "k", Ask: keys.Ask{Min: 1, Want: 2}}}}
	fieldtest.Matter(t, []*keys.Request{in}, func(r *keys.Request) (any, error) { return proto.Marshal(keysTo(*r)) }, "Request.Member")
	fieldtest.Matter(t, []*federationpb.ApplyKeysRequest{keysTo(*in)}, func(r *federationpb.ApplyKeysRequest) (any, error) { return keysFrom(r), nil },
		"Request.Member", "ApplyKeysRequest.Budget", "ApplyKeysRequest.WindowMicros", "ApplyKeysRequest.OtherWindowsMicros") // which the service reads
}

// TestEveryFieldOfAReplyIsSent but what the coordinator needs for itself.
func TestEveryFieldOfAReplyIsSent(t *testing.T) {
	in := &keys.Reply{
		Reason: ledger.Granted, Epoch: ledger.Epoch{Index: 1, Term: 2}, Limit: 3, ExpiresIn: 4, RetryAfter: 5, Now: 6,
		Grants: []keys.Grant{{Units: 7, Remaining: 8, Lacks: true}},
		Room:   keys.Room{Counters: 9, Full: true},
	}
	fieldtest.Matter(t, []*keys.Reply{in}, func(r *keys.Reply) (any, error) { return proto.Marshal(replyTo(*r)) }, "Grant.Raise")
	fieldtest.Matter(t, []*federationpb.ApplyKeysResponse{replyTo(*in)}, func(r *federationpb.ApplyKeysResponse) (any, error) { return replyFrom(r) }, "Grant.Raise")
}

// TestEveryFieldOfAStateIsSent but vouches.
func TestEveryFieldOfAStateIsSent(t *testing.T) {
	in := &ledger.State{
		Window: 1, Index: 2, Term: 3, Limit: 4, Latest: 5, Before: 6, Reserved: 7,
		Accounts: []ledger.Account{{Member: "a", Holder: "h", Seq: 8, Granted: 9}},
		Standings: []ledger.Standing{{
			Member: "a", Seen: 10, Weight: 11, Tenants: ledger.Tenants{Met: 12, Unmet: 13},
			Demand: 14, Before: 15, Slice: 16, Next: 17, Told: 18,
		}},
		Closed: []ledger.Closed{{
			Index: 19, Limit: 20, Granted: 21,
			Usage: []ledger.MemberUsage{{Member: "a", Granted: 22, Admitted: 23, Refused: 24, Reported: true, Complete: true}},
		}},
	}
	fieldtest.Matter(t, []*ledger.State{in}, func(s *ledger.State) (any, error) { return proto.Marshal(stateTo(*s)) }, "State.Vouches")
	fieldtest.Matter(t, []*federationpb.State{stateTo(*in)}, func(s *federationpb.State) (any, error) { return stateFrom(s) }, "State.Vouches")
}

// TestClonesOfCredentials count in the same place, and note refusals there.
func TestClonesOfCredentials(t *testing.T) {
	d := &throttledCredentials{TransportCredentials: insecure.NewCredentials(), metrics: newMetrics(nil), limit: newHandshakeLimit(&clocktesting.FakePassiveClock{})}
	if c, is := d.Clone().(*throttledCredentials); !is || c.metrics != d.metrics || c.limit != d.limit {
		t.Errorf("the clone of %+v is %+v", d, c)
	}
	w := &witness{TransportCredentials: insecure.NewCredentials(), outcome: &outcome{}}
	if c, is := w.Clone().(*witness); !is || c.outcome != w.outcome {
		t.Errorf("the clone of %+v is %+v", w, c)
	}
}

func TestEveryCountOfTheCoordinatorIsExposed(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	Expose(r, func() kubernetes.Stats { return kubernetes.Stats{Leases: 1, Loads: 2, Writes: 3, Conflicts: 4} })
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		got[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue()
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", f.GetName())
		}
	}
	want := map[string]float64{"weir_hub_leases_total": 1, "weir_hub_record_loads_total": 2, "weir_hub_record_writes_total": 3, "weir_hub_overtaken_total": 4}
	if !maps.Equal(got, want) {
		t.Errorf("exposed are %v, want %v", got, want)
	}
}
