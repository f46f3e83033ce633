package admin

import "github.com/weir-dev/weir/internal/sidecar/pools"

// poolState is a pool in force at this moment.
type poolState struct {
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	Algorithm   string `json:"algorithm"`
	Coordinator string `json:"coordinator"`
	Shadow      bool   `json:"shadow"`

	Limit   int64 `json:"limit"`   // of the fleet, 0 before the coordinator answered
	Holders int64 `json:"holders"` // that divide it
	Granted int64 `json:"granted"` // to all of them

	Share    int64 `json:"share"`    // of this sidecar, 0 when it expired
	Ceiling  int64 `json:"ceiling"`  // the smaller of share and inferred
	Inferred int64 `json:"inferred"` // that the app bears, by latency
	InFlight int64 `json:"inFlight"` // that hold a slot; where the limit is per key, of the key with the most
	Keys     int   `json:"keys"`     // with a request in flight, where the limit is per key
	Spared   int64 `json:"spared"`   // in flight without one, let through in mode Shadow
	Queued   int64 `json:"queued"`
	Fenced   bool  `json:"fenced"`
	Local    bool  `json:"local"`

	BaselineMicros    int64 `json:"baselineMicros"`
	LatencyMicros     int64 `json:"latencyMicros"`
	QuarantinedMicros int64 `json:"quarantinedMicros"`

	Admitted int64 `json:"admitted"`
	Refused  int64 `json:"refused"`
	Fences   int64 `json:"fences"`
	Aborted  int64 `json:"aborted"`
	Beats    int64 `json:"beats"`

	CoordinatorError string           `json:"coordinatorError,omitempty"`
	Partitions       []partitionState `json:"partitions,omitempty"`
}

type partitionState struct {
	Name       string `json:"name"`
	Guaranteed int64  `json:"guaranteed"`
	InFlight   int64  `json:"inFlight"`
	Queued     int64  `json:"queued"`
	Refused    int64  `json:"refused"`
}

func poolStateOf(p *pools.State) poolState {
	s := &p.Stats
	out := poolState{
		Namespace: p.Pool.Namespace, Name: p.Pool.Name,
		Algorithm: string(p.Pool.Algorithm.Type), Coordinator: string(p.Pool.Coordinator.Type), Shadow: p.Shadow,
		Limit: s.Grant.Limit, Holders: s.Grant.Holders, Granted: s.Grant.Granted,
		Share: s.Share, Ceiling: s.Ceiling, Inferred: s.Inferred,
		InFlight: s.InFlight, Keys: s.Keys, Spared: p.Spared, Queued: s.Queued, Fenced: s.Fenced, Local: s.Local,
		BaselineMicros: s.Baseline.Microseconds(), LatencyMicros: s.Latency.Microseconds(),
		QuarantinedMicros: int64(s.Grant.Quarantined),
		Admitted:          s.Admitted, Refused: s.Refused, Fences: s.Fences, Aborted: s.Aborted, Beats: s.Beats,
	}
	if s.CoordinatorError != nil {
		out.CoordinatorError = s.CoordinatorError.Error()
	}
	for _, part := range s.Partitions {
		out.Partitions = append(out.Partitions, partitionState(part))
	}
	return out
}
