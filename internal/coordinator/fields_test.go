package coordinator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/audit"
	"github.com/weir-dev/weir/internal/fieldtest"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

func TestEveryFieldOfAReportIsRead(t *testing.T) {
	hash := func(digit string) string { return strings.Repeat(digit, hashSize) }
	rate := func(limit, offset int64, monthly bool) *fleetpb.Rate {
		return &fleetpb.Rate{Limit: limit, Burst: limit + 7, WindowMicros: int64(limiter.Day), OffsetMicros: offset, Monthly: monthly}
	}
	placed := int64(9)
	in := &fleetpb.LimitReport{
		Generation: 1, AdmittedTotal: 2, RefusedTotal: 3, RoundTripsTotal: 4, UnplacedTotal: 5, ActiveKeys: 6, PlacedTotal: &placed, Waiting: true,
		LearningReason: int32(limiter.Amnesia), LearningMicros: 7,
		Hottest: []*fleetpb.HotKey{{Hash: hash("a"), Admitted: 8, Refused: 9, Error: 1}},
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
		LearningReason: int32(limiter.ClockBehind), LearningMicros: 7,
		Windows: []*fleetpb.WindowReport{{Windows: []*fleetpb.Window{
			{Rate: rate(26, 0, false), Index: 27}, {Rate: &fleetpb.Rate{Limit: 28, WindowMicros: int64(limiter.MaxWindow), Monthly: true}, Index: 24000},
		}}},
	}
	fieldtest.Matter(t, []*fleetpb.LimitReport{in, behind}, func(r *fleetpb.LimitReport) (any, error) {
		report, _, wrong := reportFrom(r)
		learned, err := learningFrom(r, time.Unix(0, 0))
		return []any{report, learned}, errors.Join(append(wrong, err)...)
	}, "LimitReport.Namespace", "LimitReport.Policy", "LimitReport.Limit", "LimitReport.StoreError", // which enterReport reads
		"HotKey.Error",   // which only bounds the others
		"Learning.Since") // which is now
}

func TestEveryFieldOfAPoolReportIsRead(t *testing.T) {
	in := &fleetpb.PoolReport{
		Generation: 1, Share: 2, Ceiling: 3, Inferred: 4, InFlight: 5, Peak: 6, Spared: 7, Queued: 8, Fenced: true, BaselineMicros: 10, LatencyMicros: 11,
		AdmittedTotal: 12, RefusedTotal: 13, FencedTotal: 14, AbortedTotal: 15, CoordinatorError: "away", Limit: 16, Holders: 17, Occupied: 18,
		Bound: 19, QuarantinedMicros: 20,
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
		"LeaseRequest.Id", "LeaseRequest.Key", "LeaseRequest.Generation", "LeaseRequest.Rates", // which lease reads
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
	}, "Snapshot.Policies", "Snapshot.Pool") // every field of which package policy encodes
}

func TestEveryFieldOfARejectionIsSent(t *testing.T) {
	in := &refusedRow{Kind: "k", Namespace: "n", Object: "o", Limit: "l", Error: "e"}
	fieldtest.Matter(t, []*refusedRow{in}, func(r *refusedRow) (any, error) {
		of := limitName{policy: types.NamespacedName{Namespace: r.Namespace, Name: r.Object}, limit: r.Limit}
		return answerOf([]rejection{{of: of, kind: r.Kind, err: r.Error}}), nil
	}, "Rejected.More") // which is of rows that do not fit
}

// A refusedRow is all that is said of one row.
type refusedRow struct{ Kind, Namespace, Object, Limit, Error string }
