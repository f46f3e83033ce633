package fleet

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/testing/fieldtest"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/policy/revision"
	"github.com/weir-dev/weir/pkg/store"
)

// A question is all that a lease request can say.
type question struct {
	Key        store.Key
	Generation int64
	Rates      []limiter.Rate
	Command    limiter.Command
	Gateway    string
}

func TestEveryFieldOfALeaseIsSent(t *testing.T) {
	rate := limiter.Rate{Limit: 1, Window: 2, Burst: 3, Offset: 4, Monthly: true}
	windows := limiter.Windows{N: 1}
	windows.Open[0] = limiter.OpenWindow{Rate: rate, Index: 5, Granted: 6}
	in := &question{
		Key:        store.Key{Scope: store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}, Hash: "h"},
		Generation: 7, Rates: []limiter.Rate{rate}, Gateway: "g",
		Command: limiter.Command{Op: limiter.Take, Min: 8, Want: 9, At: 10, First: true, Tenant: "t", Floor: 11, Windows: windows},
	}
	fieldtest.Matter(t, []*question{in}, func(q *question) (any, error) {
		of := &target{gateway: q.Gateway}
		return of.message(1, q.Key, limiter.Params{Generation: q.Generation, Rates: q.Rates}, q.Command).GetLease(), nil
	}, "Scope.Cluster", // which is that of the controller
		"Command.Memory",  // which is the store's own
		"LeaseRequest.Id") // which is the call's
}

func TestEveryFieldOfAGrantIsRead(t *testing.T) {
	rate := &fleetpb.Rate{Limit: 1, WindowMicros: 2, Burst: 3, OffsetMicros: 4, Monthly: true}
	in := &fleetpb.LeaseReply{
		Granted: 1, Remaining: 2, ExpiresInMicros: 3, RetryAfterMicros: 4, NowMicros: 5, Limit: 6, ResetAfterMicros: 7, DelayMicros: 8,
		Algorithm: 1, Reason: 1, Windows: []*fleetpb.Window{{Rate: rate, Index: 9, Granted: 10}},
	}
	fieldtest.Matter(t, []*fleetpb.LeaseReply{in}, func(r *fleetpb.LeaseReply) (any, error) { return resultOf(r) },
		"LeaseReply.Id", "LeaseReply.Error", "LeaseReply.Defect", "LeaseReply.OfLimit", "LeaseReply.Term", "LeaseReply.ClockMicros") // which Apply reads
}

// A beat is all that a heartbeat can say.
type beat struct {
	Key        pool.Key
	Generation int64
	Command    pool.Command
}

func TestEveryFieldOfABeatIsSent(t *testing.T) {
	in := &beat{
		Key: pool.Key{Namespace: "n", Name: "p"}, Generation: 1,
		Command: pool.Command{Op: pool.Leave, Seq: 2, Term: 3, Applied: 4, Held: 5, InFlight: 6, Peak: 7, Limit: 8},
	}
	fieldtest.Matter(t, []*beat{in}, func(b *beat) (any, error) {
		return beatMessage(1, b.Key, pool.Params{Generation: b.Generation}, b.Command).GetHeartbeat(), nil
	}, "Key.Cluster", "Command.Holder", // which the controller knows by the stream
		"Heartbeat.Id") // which is the call's
}

func TestEveryFieldOfAShareIsRead(t *testing.T) {
	in := &fleetpb.Share{
		Seq: 1, Term: 2, Generation: 3, Share: 4, TtlMicros: 5, Limit: 6, Holders: 7, Granted: 8, InFlight: 9, Occupied: 10, Bound: 11, QuarantinedMicros: 12,
	}
	fieldtest.Matter(t, []*fleetpb.Share{in}, func(s *fleetpb.Share) (any, error) { return grantOf(s), nil },
		"Share.Id", "Share.Error", "Share.Defect") // which Apply reads
}

// A recorder notes what the controller asks for.
type recorder struct {
	Applied []applied
	Edited  []edited
	Counts  []holders
	Clocks  []clock
	Queries []*fleetpb.AuditQuery
}

type (
	applied struct {
		Version, Snapshot string
		Secrets           []*fleetpb.Secret
	}
	edited struct {
		Base, Version, Digest, Data string
		Removed                     []revision.Name
		Secrets                     []*fleetpb.Secret
		Renewed                     bool
	}
	holders struct {
		Namespace, Policy string
		Holders           int64
	}
	clock struct {
		Server string
		By     store.Reached
	}
)

func (*recorder) InForce() (string, []*fleetpb.Holders_Count) { return "", nil }

func (r *recorder) Apply(version string, snapshot []byte, secrets []*fleetpb.Secret) error {
	r.Applied = append(r.Applied, applied{version, string(snapshot), secrets})
	return nil
}

func (r *recorder) Edit(e revision.Edit, secrets []*fleetpb.Secret, renewed bool) error {
	r.Edited = append(r.Edited, edited{e.Base, e.Version, string(e.Digest), string(e.Data), e.Removed, secrets, renewed})
	return nil
}

func (r *recorder) SetHolders(namespace, name string, n int64) {
	r.Counts = append(r.Counts, holders{namespace, name, n})
}

func (r *recorder) Reached(server string, by store.Reached) {
	r.Clocks = append(r.Clocks, clock{server, by})
}

func (*recorder) Report(time.Time, uint64) *fleetpb.Report { return nil }

func (r *recorder) Audit(q *fleetpb.AuditQuery) *fleetpb.AuditReply {
	r.Queries = append(r.Queries, q)
	return &fleetpb.AuditReply{Id: q.GetId()}
}

func (*recorder) Promise(_, _ limiter.Instant) (limiter.Instant, bool) { return 0, false }

func TestEveryFieldOfAMessageIsDone(t *testing.T) {
	config := func(snapshot, secret string) *fleetpb.ToHolder {
		return &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Config{Config: &fleetpb.Config{
			Version: policy.Version([]byte(snapshot)), Snapshot: []byte(snapshot), Secrets: []*fleetpb.Secret{{Name: secret, Version: secret}},
		}}}
	}
	edit := func(snapshot, secret string) *fleetpb.ToHolder {
		m := config(snapshot, secret)
		m.GetConfig().Base, m.GetConfig().Digest, m.GetConfig().SecretsRenewed = secret, []byte(secret), true
		m.GetConfig().Removed = []*fleetpb.Config_Entry{{Kind: "policy", Namespace: "n", Name: "p"}}
		return m
	}
	inputs := []*fleetpb.ToHolder{
		config("{}", "a"), config("[]", "b"),
		edit("{}", "a"), edit("[]", "b"),
		{Message: &fleetpb.ToHolder_Holders{Holders: &fleetpb.Holders{Counts: []*fleetpb.Holders_Count{{Namespace: "n", Policy: "p", Holders: 1}}}}},
		{Message: &fleetpb.ToHolder_Clocks{Clocks: &fleetpb.Clocks{Clocks: []*fleetpb.Clocks_Clock{{Server: "s", NowMicros: 2, DoubtfulMicros: 3}}}}},
		{Message: &fleetpb.ToHolder_Audit{Audit: &fleetpb.AuditQuery{Id: 4, Namespace: "n"}}},
	}
	fieldtest.Matter(t, inputs, func(m *fleetpb.ToHolder) (any, error) {
		r := &recorder{}
		reply := do(m, r)
		return []any{*r, reply}, nil
	}, "Secret.Data", "AuditQuery.Policy", "AuditQuery.Limit", "AuditQuery.Windows", "AuditQuery.Hashes", "AuditQuery.SinceMicros", // which the handler reads
		"Acknowledge.Error", "Acknowledge.Whole", "FromHolder.Message", "AuditReply.Keys", "AuditReply.Unknown") // which the handler says
}

func TestEveryFieldOfAStateIsShown(t *testing.T) {
	c := &Client{cfg: Config{Address: "weir:15030"}, streams: 3, term: 4, cause: errors.New("refused"), link: &link{}}
	want := State{Connected: true, Streams: 3, Address: "weir:15030", Term: 4, Error: "refused"}
	if got := c.State(); got != want {
		t.Errorf("state %+v, want %+v", got, want)
	}
	if got := c.unavailable(c.cause).Error(); !strings.Contains(got, "controller at weir:15030") || !strings.Contains(got, "refused") {
		t.Errorf("the error is %q", got)
	}
}
