package fleet

import (
	"testing"

	"github.com/weir-dev/weir/internal/fieldtest"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A question is all that a lease request can say.
type question struct {
	Key        store.Key
	Generation int64
	Rates      []limiter.Rate
	Command    limiter.Command
}

func TestEveryFieldOfALeaseIsSent(t *testing.T) {
	rate := limiter.Rate{Limit: 1, Window: 2, Burst: 3, Offset: 4, Monthly: true}
	windows := limiter.Windows{N: 1}
	windows.Open[0] = limiter.OpenWindow{Rate: rate, Index: 5, Granted: 6}
	in := &question{
		Key:        store.Key{Scope: store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}, Hash: "h"},
		Generation: 7, Rates: []limiter.Rate{rate},
		Command: limiter.Command{Op: limiter.Take, Min: 8, Want: 9, At: 10, First: true, Tenant: "t", Floor: 11, Windows: windows},
	}
	fieldtest.Matter(t, []*question{in}, func(q *question) (any, error) {
		return leaseMessage(1, q.Key, limiter.Params{Generation: q.Generation, Rates: q.Rates}, q.Command).GetLease(), nil
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
