package coordinator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/poolaudit"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/absence"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/bindings"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/outbox"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/records"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/testing/fieldtest"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

func TestEveryFieldOfAReportIsRead(t *testing.T) {
	hash := func(digit string) string { return strings.Repeat(digit, hashSize) }
	rate := func(limit, offset int64, monthly bool) *fleetpb.Rate {
		return &fleetpb.Rate{Limit: limit, Burst: limit + 7, WindowMicros: int64(limiter.Day), OffsetMicros: offset, Monthly: monthly}
	}
	placed := int64(9)
	in := &fleetpb.LimitReport{
		Generation: 1, AdmittedTotal: 2, RefusedTotal: 3, RoundTripsTotal: 4, UnplacedTotal: 5, ActiveKeys: 6, PlacedTotal: &placed, Waiting: true,
		LearningReason: int32(limiter.Amnesia), LearningMicros: 7, KeysBound: fleetpb.KeysBound_KEYS_BOUND_MAX_KEYS, SharedKeys: 26, Matched: true,
		Hottest: []*fleetpb.HotKey{{Hash: hash("a"), Admitted: 8, Refused: 9, Error: 1, AdmittedPerMinute: 8.5, RefusedPerMinute: 9.5}},
		Windows: []*fleetpb.WindowReport{{
			Windows: []*fleetpb.Window{{Rate: rate(10, 0, false), Index: 11, Granted: 12}},
			Final:   true, Admitted: 13, Refused: 14, Local: 15, LocalShare: 16, AgeMicros: 17, Unlisted: []int64{18},
			Keys: []*fleetpb.KeyCount{{Hash: hash("b"), Admitted: 19, Refused: 20}},
		}, {
			Windows: []*fleetpb.Window{{Rate: rate(21, int64(limiter.Second), false), Index: 22, Granted: 23}},
			Keys:    []*fleetpb.KeyCount{{Hash: hash("c"), Admitted: 24, Refused: 25}},
		}},
	}
	behind := &fleetpb.LimitReport{
		LearningReason: int32(limiter.ClockBehind), LearningMicros: 7, UnmatchedMicros: unmatchedAfter.Microseconds(),
		Windows: []*fleetpb.WindowReport{{Windows: []*fleetpb.Window{
			{Rate: rate(26, 0, false), Index: 27}, {Rate: &fleetpb.Rate{Limit: 28, WindowMicros: int64(limiter.MaxWindow), Monthly: true}, Index: 24000},
		}}},
	}
	fieldtest.Matter(t, []*fleetpb.LimitReport{in, behind}, func(r *fleetpb.LimitReport) (any, error) {
		report, _, wrong := reportFrom(r)
		learned, err := learningFrom(r, time.Unix(0, 0))
		full, unread := keysFullFrom(r)
		return []any{report, learned, full, matchesFrom(r)}, errors.Join(append(wrong, err, unread)...)
	}, "LimitReport.Namespace", "LimitReport.Policy", "LimitReport.Limit", "LimitReport.StoreError", // which enterReport reads
		"HotKey.Error",                  // which only bounds the others
		"Learning.Since",                // which is now
		"KeysFull.Pods", "KeysFull.Pod") // which the session knows
}

func TestEveryFieldOfAPoolReportIsRead(t *testing.T) {
	in := &fleetpb.PoolReport{
		Generation: 1, Share: 2, Ceiling: 3, Inferred: 4, InFlight: 5, Peak: 6, Spared: 7, Queued: 8, Fenced: true, BaselineMicros: 10, LatencyMicros: 11,
		AdmittedTotal: 12, RefusedTotal: 13, FencedTotal: 14, AbortedTotal: 15, CoordinatorError: "away", Limit: 16, Holders: 17, Occupied: 18,
		Bound: 19, QuarantinedMicros: 20, KeyMissingTotal: 24,
		Partitions: []*fleetpb.PoolReport_Partition{{Name: "batch", Guaranteed: 21, InFlight: 22, RefusedTotal: 23}},
	}
	fieldtest.Matter(t, []*fleetpb.PoolReport{in}, func(r *fleetpb.PoolReport) (any, error) { return poolReportFrom(r) },
		"PoolReport.Namespace", "PoolReport.Pool", // which enterPools reads
		"PoolReport.BeatsTotal") // which older sidecars send, and nobody read
}

func TestEveryFieldOfALeaseRequestIsRead(t *testing.T) {
	window := func(limit int64) *fleetpb.Window {
		return &fleetpb.Window{Rate: &fleetpb.Rate{Limit: limit, Burst: limit + 7, WindowMicros: int64(limiter.Day)}, Index: limit, Granted: limit}
	}
	take := &fleetpb.LeaseRequest{
		Op: int32(limiter.Take), Min: 1, Want: 2, First: true, Tenant: strings.Repeat("a", hashSize), FloorMicros: 3,
	}
	back := &fleetpb.LeaseRequest{Op: int32(limiter.Return), AtMicros: 4, Windows: []*fleetpb.Window{window(5)}}
	other := &fleetpb.LeaseRequest{Op: int32(limiter.Return), AtMicros: 4, Windows: []*fleetpb.Window{{
		Rate: &fleetpb.Rate{Limit: 6, WindowMicros: int64(limiter.Day), OffsetMicros: int64(limiter.Second)}, Index: 6, Granted: 6,
	}}}
	monthly := &fleetpb.LeaseRequest{Op: int32(limiter.Return), AtMicros: 4, Windows: []*fleetpb.Window{{
		Rate: &fleetpb.Rate{Limit: 6, WindowMicros: int64(limiter.MaxWindow), Monthly: true}, Index: 24000, Granted: 6,
	}}}
	fieldtest.Matter(t, []*fleetpb.LeaseRequest{take, back, other, monthly}, func(r *fleetpb.LeaseRequest) (any, error) { return command(r) },
		"LeaseRequest.Id", "LeaseRequest.Key", "LeaseRequest.Generation", "LeaseRequest.Rates", "LeaseRequest.Gateway", // which lease reads
		"Command.Memory") // which is the store's own
}

func TestEveryFieldOfAHeartbeatIsRead(t *testing.T) {
	in := &fleetpb.Heartbeat{Op: int32(pool.Beat), Seq: 1, Term: 2, Applied: 3, Held: 4, InFlight: 5, Peak: 6, Limit: 7}
	fieldtest.Matter(t, []*fleetpb.Heartbeat{in}, func(h *fleetpb.Heartbeat) (any, error) { return beatCommand(audit.Holder{}, h), nil },
		"Heartbeat.Id", "Heartbeat.Namespace", "Heartbeat.Pool", "Heartbeat.Generation", // which beatsFor and beat read
		"Command.Holder") // which is known by the stream
}

func TestEveryFieldOfAGrantIsSent(t *testing.T) {
	in := &pool.Grant{
		Seq: 1, Term: 2, Generation: 3, Share: 4, TTL: 5, Limit: 6, Holders: 7, Granted: 8, InFlight: 9, Occupied: 10, Bound: 11, Quarantined: 12,
	}
	fieldtest.Matter(t, []*pool.Grant{in}, func(g *pool.Grant) (any, error) {
		share := &fleetpb.Share{}
		fillShare(share, *g)
		return share, nil
	}, "Share.Id", "Share.Error", "Share.Defect") // which beat writes
}

func TestEveryFieldOfALeaseIsSent(t *testing.T) {
	in := &limiter.Result{
		Granted: 1, Remaining: 2, Limit: 3, ResetAfter: 4, ExpiresIn: 5, RetryAfter: 6, Delay: 7, Now: 8,
		Algorithm: limiter.SlidingWindow, Reason: limiter.Exhausted,
	}
	in.Windows.N = 1
	in.Windows.Open[0] = limiter.OpenWindow{Rate: limiter.Rate{Limit: 9, Window: 10, Burst: 11, Offset: 12, Monthly: true}, Index: 13, Granted: 14}
	fieldtest.Matter(t, []*limiter.Result{in}, func(r *limiter.Result) (any, error) {
		reply := &fleetpb.LeaseReply{}
		fillLease(reply, r)
		return reply, nil
	}, "LeaseReply.Id", "LeaseReply.Term", "LeaseReply.Error", "LeaseReply.Defect", "LeaseReply.OfLimit", "LeaseReply.ClockMicros") // which lease writes
}

// A configured is all that a config can say.
type configured struct {
	Snapshot policy.Snapshot
	Secrets  []*fleetpb.Secret
}

func TestEveryFieldOfAConfigIsSent(t *testing.T) {
	in := &configured{
		Snapshot: policy.Snapshot{Cluster: "c"},
		Secrets:  []*fleetpb.Secret{{Name: "n", Version: "v", Data: map[string][]byte{"password": []byte("p")}}},
	}
	fieldtest.Matter(t, []*configured{in}, func(c *configured) (any, error) {
		made, err := newConfig(c.Snapshot, c.Secrets)
		if err != nil {
			return nil, err
		}
		return made.message, nil
	}, "Snapshot.Policies", "Snapshot.Pool", "Snapshot.Pools") // package policy encodes every field of them
	for _, secrets := range [][]*fleetpb.Secret{nil, in.Secrets} {
		made, err := newConfig(in.Snapshot, secrets)
		if err != nil {
			t.Fatal(err)
		}
		if made.secret != (secrets != nil) || made.version != made.message.GetConfig().GetVersion() || made.snapshot.Cluster != "c" {
			t.Errorf("with secrets %v it is known as %+v", secrets, made)
		}
	}
}

// TestHoldersComeBackUntilThen: what was counted of windows before is not all there is.
func TestHoldersComeBackUntilThen(t *testing.T) {
	then := time.Unix(7, 0)
	if b := newAccounting(then); !b.since.Equal(then) {
		t.Errorf("the accounting is complete since %v", b.since)
	}
}

func TestEveryFieldOfARejectionIsSent(t *testing.T) {
	in := &refusedRow{Kind: "k", Namespace: "n", Object: "o", Limit: "l", Error: "e"}
	fieldtest.Matter(t, []*refusedRow{in}, func(r *refusedRow) (any, error) {
		of := limitName{policy: types.NamespacedName{Namespace: r.Namespace, Name: r.Object}, limit: r.Limit}
		return answerOf([]rejection{{of: of, kind: r.Kind, err: r.Error}}), nil
	}, "Rejected.More") // which is of rows that do not fit
}

// whole returns a policy of one limit in which every field matters that the controller works
// by.
func whole() policy.Policy {
	return policy.Policy{
		Namespace: "n", Name: "p", Generation: 4, Since: 5, ResetAt: 6, Store: policy.Store{Type: policy.RedisStore},
		Consistency: policy.Consistency{Mode: policy.Leased, Size: policy.Fixed, Batch: 8, Expiry: policy.CarryOver, LowWater: 2},
		Limits: []policy.Limit{{
			Name: "l", Rates: []limiter.Rate{{Limit: 10, Window: limiter.Second}, {Limit: 300, Window: limiter.Day}}, Key: &policy.Key{MaxKeys: 24},
			Clusters:  7,
			Retention: limiter.Retention{Durable: true, Resume: true}, Cost: &policy.Cost{Default: 1, Max: 5, ResponseHeader: "x-used"},
			Overrides: []policy.Override{{Values: []policy.Value{{"gold"}}, Rates: []limiter.Rate{{Limit: 20, Window: limiter.Second}}}},
		}},
	}
}

func TestEveryFieldOfAPolicyReachesTheAudit(t *testing.T) {
	p := whole()
	want := audit.Config{
		Generation: 4, Since: 5, Reset: 6, Keyed: true, Carry: 9, Unsettled: true, Resume: true, Clusters: 7,
		Promise: audit.Promise{Rates: p.Limits[0].Rates, Most: []int64{10, 300}},
		Overrides: map[string]audit.Promise{
			store.HashValue("gold"): {Rates: p.Limits[0].Overrides[0].Rates, Most: []int64{20}},
		},
	}
	if diff := cmp.Diff(want, promised(&p, &p.Limits[0])); diff != "" {
		t.Errorf("it promises (-want +got):\n%s", diff)
	}
}

func TestEveryFieldOfAPolicyReachesTheCounters(t *testing.T) {
	p := whole()
	p.Store, p.Limits[0].Budget = policy.Store{Type: policy.ControllerStore}, &policy.BudgetRef{ID: "i", Name: "b"}
	c := &config{
		snapshot: policy.Snapshot{Cluster: "c"}, limits: map[limitName]*published{}, policies: map[types.NamespacedName]*policy.Policy{},
	}
	c.add(&p)
	params := limiter.Params{Rates: p.Limits[0].Rates, Generation: 4, Since: 5, Retention: p.Limits[0].Retention}
	own := params
	own.Rates = p.Limits[0].Overrides[0].Rates
	name := types.NamespacedName{Namespace: "n", Name: "p"}
	want := map[limitName]*published{{policy: name, limit: "l"}: {
		params: params, own: map[string]limiter.Params{store.HashValue("gold"): own}, span: p.Limits[0].Rates[1],
		scope: store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}, keyed: true, most: 24, shared: 3, here: true, budget: p.Limits[0].Budget,
	}}
	if diff := cmp.Diff(want, c.limits, cmp.AllowUnexported(limitName{}, published{})); diff != "" || c.policies[name] != &p {
		t.Errorf("counters work by (-want +got):\n%s", diff)
	}
}

func TestEveryFieldOfAPoolIsDividedBy(t *testing.T) {
	p := &policy.Pool{
		Namespace: "n", Name: "p", Generation: 2,
		Limit: policy.LimitRange{Initial: 9}, Coordinator: policy.Store{Type: policy.ControllerStore},
	}
	want := &dividedPool{
		name: types.NamespacedName{Namespace: "n", Name: "p"}, key: pool.Key{Cluster: "c", Namespace: "n", Name: "p"},
		params: p.Params(), here: true, policy: p,
	}
	if diff := cmp.Diff(want, newDividedPool("c", p), cmp.AllowUnexported(dividedPool{})); diff != "" {
		t.Errorf("it is divided by (-want +got):\n%s", diff)
	}
}

func TestATermHasWhatItsCoordinatorHas(t *testing.T) {
	c := New(Config{Remembered: func(policy.Store) []audit.Unbroken { return make([]audit.Unbroken, 7) }})
	tm := newTerm(c, records.Handover{Term: 3, First: true}, logr.Discard())
	defer tm.tasks.ShutDown()
	if got := tm.observe(types.NamespacedName{}).Term; got != 3 {
		t.Errorf("term %d is observed, want 3", got)
	}
	if got := len(tm.accounting.remembered(policy.Store{})); got != 7 {
		t.Errorf("%d spans of a store's memory are known, want 7", got)
	}
}

func TestWhatAStatusSaysOfAPoolAtOnce(t *testing.T) {
	f := poolaudit.Figures{Generation: 1, Holders: 2, Pending: true, Verdict: audit.Exceeded, Saturated: true, Quarantined: 3, CutOff: 4, Limit: 5}
	want := poolSummary{
		generation: 1, holders: 2, pending: true, verdict: audit.Exceeded, saturated: true, quarantined: true, cutOff: 4, known: true,
	}
	if got := summaryOf(f); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTheErrorOfADecisionIsOfItsLimit(t *testing.T) {
	scope := store.Scope{Namespace: "n", Policy: "p", Limit: "l"}
	of := limitName{policy: types.NamespacedName{Namespace: "n", Name: "p"}, limit: "l"}
	if err, is := errors.AsType[*store.UnavailableError](notServed(of, "why")); !is || err.Part != scope || err.Store == "" || err.Cause.Error() != "why" {
		t.Errorf("what is not served fails with %+v", err)
	}
	away := errors.New("away")
	tm := &term{bindings: bindings.NewSet()}
	for _, budget := range []*policy.BudgetRef{nil, {ID: "i"}} {
		want := store.UnavailableError{Store: "s", Cause: away}
		if budget != nil {
			want.Part = scope
		}
		got := tm.ofLimit(&published{scope: scope, budget: budget}, &store.UnavailableError{Store: "s", Cause: away})
		if err, is := errors.AsType[*store.UnavailableError](got); !is || *err != want {
			t.Errorf("of budget %v: %+v, want %+v", budget, err, want)
		}
	}
}

func TestATakeIsNotAPeek(t *testing.T) {
	for _, op := range []limiter.Op{limiter.Take, limiter.Peek} {
		if c, err := command(&fleetpb.LeaseRequest{Op: int32(op)}); err != nil || c.Op != op {
			t.Errorf("operation %d is read as %d, error %v", op, c.Op, err)
		}
	}
}

// TestASnapshotOfAPodHasOnlyWhatLasts: no version of a Secret, no key of tokens that is read
// from elsewhere, and nothing of a limit's birth.
// The one that it was made of still has them.
func TestASnapshotOfAPodHasOnlyWhatLasts(t *testing.T) {
	in := func() policy.Snapshot {
		p := whole()
		p.Store.SecretVersion, p.Limits[0].Retention.Born = "1", []limiter.MemoryID{2}
		p.Limits[0].Pending = true
		p.JWTProviders = []policy.JWTProvider{{URL: "u", Keys: "1"}, {Secret: "s", Keys: "2"}, {Keys: "3"}}
		return policy.Snapshot{Cluster: "c", Policies: []policy.Policy{p}, Pool: &policy.Pool{Name: "p", Coordinator: policy.Store{Address: "a", SecretVersion: "3"}}, Pools: []policy.Pool{{Name: "q", Coordinator: policy.Store{Address: "a", SecretVersion: "4"}}}}
	}
	of, want := in(), in()
	want.Policies[0].Store.SecretVersion, want.Policies[0].Limits[0].Retention.Born, want.Pool.Coordinator.SecretVersion = "", nil, ""
	want.Policies[0].Limits[0].Pending, want.Pools[0].Coordinator.SecretVersion = false, ""
	want.Policies[0].JWTProviders[0].Keys, want.Policies[0].JWTProviders[1].Keys = "", ""
	if diff := cmp.Diff(want, withoutSecrets(of)); diff != "" {
		t.Errorf("a pod is created with (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(in(), of); diff != "" {
		t.Errorf("what it was made of has changed (-was +is):\n%s", diff)
	}
}

func TestEveryFieldOfASessionIsObserved(t *testing.T) {
	s := &session{
		Identity: podauth.Identity{Namespace: "n", Pod: "p", PodUID: "u"}, nonce: "1", version: "v", since: time.Unix(2, 0),
		capture: fleetpb.Capture_CAPTURE_PORT, mode: fleetpb.Mode_MODE_SHADOW, refusal: "no",
	}
	want := Session{
		Pod: "p", PodUID: "u", Nonce: "1", Version: "v", Since: time.Unix(2, 0),
		Capture: fleetpb.Capture_CAPTURE_PORT, Mode: fleetpb.Mode_MODE_SHADOW, Generation: 3, Error: "no", Rejected: "row",
	}
	if got := s.view(3, "row"); got != want {
		t.Errorf("observed %+v, want %+v", got, want)
	}
}

// A refusedRow is all that is said of one row.
type refusedRow struct{ Kind, Namespace, Object, Limit, Error string }

// An asked is all that a query says.
type asked struct {
	ID                       uint64
	Namespace, Policy, Limit string
	Query                    audit.Query
}

func TestEveryFieldOfAQueryIsSent(t *testing.T) {
	in := &asked{ID: 1, Namespace: "n", Policy: "p", Limit: "l", Query: audit.Query{Since: 2, Hashes: []string{"h"}}}
	in.Query.Window.N = 1
	in.Query.Window.Open[0] = limiter.OpenWindow{Rate: limiter.Rate{Limit: 3, Window: 4, Burst: 5, Offset: 6, Monthly: true}, Index: 7, Granted: 8}
	fieldtest.Matter(t, []*asked{in}, func(a *asked) (any, error) {
		of := limitName{policy: types.NamespacedName{Namespace: a.Namespace, Name: a.Policy}, limit: a.Limit}
		return queryOf(a.ID, &inquiry{Query: a.Query, limit: of}), nil
	}, "Query.ID", "Query.Holders") // by which the answer is known, and who is asked
}

func TestHoldersAreSentTheirPoliciesOnly(t *testing.T) {
	name := types.NamespacedName{Namespace: "n", Name: "p"}
	s := &session{
		out: outbox.New[*fleetpb.ToHolder](1), holders: map[types.NamespacedName]int64{}, back: true,
		serves: &config{policies: map[types.NamespacedName]*policy.Policy{name: {}}},
	}
	s.sendHolders(&numbers{map[types.NamespacedName]int64{name: 3, {Namespace: "n", Name: "other"}: 4}, true}, absence.New(func() limiter.Instant { return 1 }, true, nil))
	sent, _ := s.out.Next()
	got := sent.GetHolders().GetCounts()
	if len(got) != 1 || got[0].GetNamespace() != "n" || got[0].GetPolicy() != "p" || got[0].GetHolders() != 3 {
		t.Errorf("it heard of %v", got)
	}
}
