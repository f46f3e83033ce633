package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weir-dev/weir/internal/federationpb"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/store"
)

var everyCommand = []ledger.Command{
	{Op: ledger.Lease, Member: "b", Holder: "h", Seq: 3, Epoch: ledger.Epoch{Index: 4, Term: 5}, Granted: 6, Min: 7, Want: 8, Demand: 9, Weight: 10, Slice: 11, Tenants: ledger.Tenants{Met: 12, Unmet: 8}},
	{Op: ledger.Release, Member: "b", Holder: "h", Seq: 3, Epoch: ledger.Epoch{Index: 4, Term: 5}, Granted: 6},
	{Op: ledger.Report, Member: "b", Holder: "h", Usage: []ledger.Usage{{Index: 1, Admitted: 2, Refused: 3, Complete: true}}},
}

// TestCommandsOnTheWire come out as they were put in.
func TestCommandsOnTheWire(t *testing.T) {
	for _, want := range everyCommand {
		got, err := commandFrom(commandTo(want))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
	reserve := commandTo(everyCommand[0])
	reserve.Op = federationpb.Command_Op(ledger.Reserve)
	if _, err := commandFrom(reserve); err == nil {
		t.Error("a member may set units aside")
	}
}

// TestGrantsOnTheWire come out as they were put in, for every reason that is a member's.
func TestGrantsOnTheWire(t *testing.T) {
	for reason := ledger.Granted; reason <= ledger.Forfeited; reason++ {
		want := ledger.Grant{
			Reason: reason, Seq: 1, Epoch: ledger.Epoch{Index: 2, Term: 3}, Granted: 4, Slice: 5, NowSlice: 6, Limit: 7,
			Remaining: 8, ExpiresIn: 9, RetryAfter: 10, Now: 11,
		}
		got, err := grantFrom(grantTo(want))
		if own := reason == ledger.Unreserved; (err != nil) != own {
			t.Errorf("reason %d: %v", reason, err)
		} else if !own && got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if _, err := grantFrom(&federationpb.Grant{Reason: federationpb.Grant_REASON_GRANTED, Granted: -1}); err == nil {
		t.Error("a negative grant is believed")
	}
}

// nonsense is a hub that answers what none does.
type nonsense struct{ federationpb.FederationClient }

func (nonsense) Apply(context.Context, *federationpb.ApplyRequest, ...grpc.CallOption) (*federationpb.Grant, error) {
	return &federationpb.Grant{Reason: -1}, nil
}

func (nonsense) Observe(context.Context, *federationpb.ObserveRequest, ...grpc.CallOption) (*federationpb.State, error) {
	return &federationpb.State{Term: -1}, nil
}

func TestAnAnswerThatNoHubGives(t *testing.T) {
	c := &Client{connection: &connection{endpoint: "hub:15040", calls: nonsense{}}}
	_, applied := c.Apply(t.Context(), budgetID, params(100, "a"), lease("a", 1, 1))
	_, observed := c.Observe(t.Context(), budgetID)
	for _, err := range []error{applied, observed} {
		refused, ok := errors.AsType[*RefusedError](err)
		if !ok || refused.Endpoint != "hub:15040" || refused.Reason != Invalid || !strings.Contains(refused.Message, "run the same version of Weir in both clusters") {
			t.Errorf("error %v, want a refusal that names the hub and the cure", err)
		}
	}
}

// TestAnAnswerOfAnotherServer names the endpoint, and the cure.
func TestAnAnswerOfAnotherServer(t *testing.T) {
	c := &connection{endpoint: "web:443"}
	for _, code := range []codes.Code{codes.Unimplemented, codes.InvalidArgument} {
		requireRefused(t, c.typed(status.Error(code, "unknown service")), "web:443", Invalid, "let spec.hub.endpoint name")
	}
}

// FuzzCommand decodes what members may send: what is accepted is valid, is what was
// sent, and can be applied.
func FuzzCommand(f *testing.F) {
	for _, c := range everyCommand {
		data, err := proto.Marshal(commandTo(c))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	p := params(100, "a", "b")
	state, _ := ledger.State{}.Step(p, 1_790_000_000_000_000, ledger.Command{
		Op: ledger.Lease, Member: "b", Holder: "h", Seq: 1, Min: 1, Want: 1, Memory: ledger.Memory{Term: 1},
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		var in federationpb.Command
		if proto.Unmarshal(data, &in) != nil {
			return
		}
		c, err := commandFrom(&in)
		if err != nil {
			return
		}
		again, err := commandFrom(commandTo(c))
		if diff := cmp.Diff(c, again, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Fatalf("%v\n%s", err, diff)
		}
		c.Memory.Term = 1
		next, _ := state.Step(p, 1_790_000_000_000_001, c)
		sent, err := stateFrom(stateTo(next))
		if diff := cmp.Diff(next, sent, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Fatalf("%v\n%s", err, diff)
		}
	})
}

// FuzzAnswer decodes what a hub may answer.
func FuzzAnswer(f *testing.F) {
	data, err := proto.Marshal(grantTo(ledger.Grant{Reason: ledger.Granted, Granted: 3}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var grant federationpb.Grant
		if proto.Unmarshal(data, &grant) == nil {
			if g, err := grantFrom(&grant); err == nil && (g.Granted < 0 || g.ExpiresIn < 0 || g.Reason == 0) {
				t.Fatalf("accepted %+v", g)
			}
		}
		var state federationpb.State
		if proto.Unmarshal(data, &state) == nil {
			_, _ = stateFrom(&state) // no more than that it ends
		}
	})
}

// TestNothingThatAHubSendsIsShown of refusals, of outages, and of a certificate.
func TestNothingThatAHubSendsIsShown(t *testing.T) {
	const sent = "TOPSECRET"
	c := &connection{endpoint: "hub:15040", identity: identity{certificate: tls.Certificate{
		Leaf: &x509.Certificate{Subject: pkix.Name{CommonName: "b"}, NotAfter: time.Now().Add(time.Hour)},
	}}}
	require := func(what string, err error, say string) {
		t.Helper()
		shown := store.Plain(err)
		if refused, ok := errors.AsType[*RefusedError](err); ok {
			shown = refused
			if !strings.Contains(refused.Detailed(), sent) {
				t.Errorf("%s: the log has %q", what, refused.Detailed())
			}
		}
		if strings.Contains(shown.Error(), sent) || !strings.Contains(shown.Error(), say) {
			t.Errorf("%s: %q, want one that says %q", what, shown, say)
		}
	}
	for reason, say := range map[federationpb.Refusal_Reason]string{
		federationpb.Refusal_REASON_UNAUTHORIZED:   "copy Secret weir-member-b",
		federationpb.Refusal_REASON_EXPIRED:        "copy Secret weir-member-b",
		federationpb.Refusal_REASON_UNKNOWN_BUDGET: "apply a FederatedBudget",
		federationpb.Refusal_REASON_UNKNOWN_MEMBER: "spec.members",
		federationpb.Refusal_REASON_MISMATCHED:     "spec.rate.window",
		federationpb.Refusal_REASON_INVALID:        "of the same version",
		federationpb.Refusal_REASON_UNAVAILABLE:    "the log of the hub's controller",
		federationpb.Refusal_REASON_NOT_LEADING:    "does not lead",
	} {
		require(reason.String(), c.typed(refuse(codes.Unavailable, reason, sent)), say)
	}
	for code, say := range map[codes.Code]string{
		codes.Unavailable:      "it closed the connection",
		codes.DeadlineExceeded: "in time",
		codes.Canceled:         "given up",
		codes.Unimplemented:    "federation port",
		codes.InvalidArgument:  "federation port",
		codes.Unknown:          "it does not answer as a hub does",
		codes.Internal:         "it does not answer as a hub does",
	} {
		require(code.String(), c.typed(status.Error(code, sent)), say)
	}
	require("a name", c.typed(status.Error(codes.Unavailable, "dns: A record lookup error: "+sent)), "cannot be resolved")
	require("an answer", c.misunderstood(errors.New(sent)), "the same version")

	var failed error = tls.RecordHeaderError{Msg: sent}
	c.outcome.note(failed)
	require("another protocol", c.typed(status.Error(codes.Unavailable, sent)), "does not speak TLS: let spec.hub.endpoint")
	failed = errors.New(sent)
	c.outcome.note(failed)
	require("another handshake", c.typed(status.Error(codes.Unavailable, sent)), "it does not answer as a hub does")
	c.outcome.note(&tls.CertificateVerificationError{Err: x509.HostnameError{Host: "hub", Certificate: &x509.Certificate{DNSNames: []string{sent}}}})
	require("another name", c.typed(status.Error(codes.Unavailable, sent)), "--federation-sans")
}
