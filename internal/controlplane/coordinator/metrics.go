package coordinator

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/memory"
)

// metrics have labels of a fixed set of values only, but for policies that were too
// large to be handed over, and limits that have no room for more keys.
type metrics struct {
	term            prometheus.Gauge
	clock           atomic.Pointer[memory.Clock] // nil while this replica does not lead
	forgotten       *prometheus.GaugeVec
	sharing         *prometheus.GaugeVec
	sessions        prometheus.Gauge
	closed          *prometheus.CounterVec
	authentications *prometheus.CounterVec
	connections     *prometheus.GaugeVec
	refusals        *prometheus.CounterVec
	room            *prometheus.GaugeVec
	leases          *prometheus.CounterVec
	rejected        *prometheus.CounterVec
	granted         prometheus.Counter
	beats           *prometheus.CounterVec
	fences          prometheus.Counter
	pushes          prometheus.Counter
	acks            *prometheus.CounterVec
	audit           prometheus.Histogram
}

// newMetrics returns them; waits returns how many sidecars wait, and taken which part of the room
// for pods is taken.
func newMetrics(r prometheus.Registerer, waits, taken func() float64) *metrics {
	f := promauto.With(r)
	m := &metrics{
		term: f.NewGauge(prometheus.GaugeOpts{
			Name: "weir_coordinator_term", Help: "The leadership term; 0 while this replica does not lead.",
		}),
		forgotten: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_coordinator_forgotten_keys",
			Help: "Counters of a policy for which a leader before had no room when it handed over; those windows that were open then grant nothing.",
		}, []string{"namespace", "policy"}),
		sharing: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_coordinator_keys_full",
			Help: "1 while there is no room for more keys of a limit, so that values that are new share counters; absent otherwise.",
		}, []string{"namespace", "policy", "limit"}),
		sessions: f.NewGauge(prometheus.GaugeOpts{
			Name: "weir_coordinator_sessions", Help: "Connected sidecars.",
		}),
		closed: f.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_coordinator_sessions_closed_total", Help: "Sessions that ended, by gRPC status code.",
		}, []string{"code"}),
		authentications: f.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_coordinator_authentications_total", Help: "Tokens presented: accepted, refused, missing, limited (too many of one pod), or failed to be reviewed.",
		}, []string{"result"}),
		connections: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_coordinator_connections",
			Help: "Open connections to the fleet's port: without a stream that is authenticated, with one whose token is in review, or authenticated.",
		}, []string{"state"}),
		refusals: f.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_coordinator_turned_away_total",
			Help: "Connections and streams that a bound of the fleet's port refused or ended: connections (too many without an authenticated stream), " +
				"address (too many of those from one address), time (none was authenticated in time), pods (too many), namespace (ended for a pod of one that has fewer), pod (ended for a newer one of the pod). messages: a stream was read more slowly.",
		}, []string{"bound"}),
		room: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_coordinator_room",
			Help: "How many connections without an authenticated stream, and how many pods with streams that enforce one limit each, the memory of this replica has room for.",
		}, []string{"of"}),
		leases: f.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_coordinator_leases_total", Help: "Lease requests, by the reason of the answer; Error when no decision was reached.",
		}, []string{"reason"}),
		rejected: f.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_coordinator_rejected_rows_total",
			Help: "Rows of sidecars that could not be read, so that they count for nothing: reports of limits and pools, replies to audit queries, leases, returns and beats.",
		}, []string{"kind"}),
		granted: f.NewCounter(prometheus.CounterOpts{
			Name: "weir_coordinator_granted_units_total", Help: "Units granted to sidecars.",
		}),
		beats: f.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_coordinator_beats_total",
			Help: "Heartbeats of pools: granted a share, quarantined (no more than was in use), unavailable or defect when there was no share.",
		}, []string{"result"}),
		fences: f.NewCounter(prometheus.CounterOpts{
			Name: "weir_coordinator_fences_total", Help: "Times that sidecars stopped because a share expired before its coordinator answered, as they report.",
		}),
		pushes: f.NewCounter(prometheus.CounterOpts{
			Name: "weir_coordinator_pushes_total", Help: "Configurations sent to sidecars.",
		}),
		acks: f.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_coordinator_acknowledgements_total", Help: "Configurations that sidecars enforce (accepted) or not (refused); edits in whose place they ask for the whole (whole).",
		}, []string{"result"}),
		audit: f.NewHistogram(prometheus.HistogramOpts{
			Name: "weir_coordinator_audit_seconds", Help: "Time to measure the windows that ended.",
			Buckets: prometheus.ExponentialBuckets(1e-5, 4, 9),
		}),
	}
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_coordinator_waiting", Help: "Sidecars that wait until this replica leads.",
	}, waits)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_coordinator_room_taken_ratio",
		Help: "Part of the room for pods with streams that is taken. A pod takes the more, the more limits it enforces.",
	}, taken)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_coordinator_clock_seconds",
		Help: "The time by which the controller's store divides windows, in seconds since 1970; 0 while this replica does not lead.",
	}, m.clockSeconds)
	return m
}

func (m *metrics) clockSeconds() float64 {
	clock := m.clock.Load()
	if clock == nil {
		return 0
	}
	return float64(clock.Now()) / float64(limiter.Second)
}
