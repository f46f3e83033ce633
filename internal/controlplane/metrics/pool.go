package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/api/v1alpha1"
)

var (
	poolLabels = []string{"namespace", "pool"}

	poolEnforcers = fleetPool("enforcers", "Pods that enforce the present generation of the pool.")
	poolDesired   = fleetPool("enforcers_desired", "Running pods that the pool applies to.")
	poolLimit     = fleetPool("limit", "Requests that the pods may have in flight together.")
	poolInFlight  = fleetPool("in_flight", "Requests that the pods have in flight.")
	poolGranted   = fleetPool("granted", "Sum of the shares of all pods.")
	poolQueued    = fleetPool("queued", "Requests that wait for a slot.")
	poolHolders   = fleetPool("holders", "Sidecars that have a share or ask for one.")
	poolFenced    = fleetPool("fenced", "Pods that refuse everything because they have no share.")
	poolOvershoot = fleetPool("overshoot", "Requests in flight beyond the limit, the most that was measured lately.")
	poolWorst     = fleetPool("overshoot_worst", "The most requests in flight beyond the limit since the pool changed.")
	poolBound     = fleetPool("overshoot_bound", "Requests in flight that the configuration allows beyond the limit; absent while nothing bounds them.")
	poolUnused    = fleetPool("underutilization_ratio", "Part of the limit that was free while requests were refused.")
	poolAdmitted  = fleetPool("admitted_per_second", "Requests that the pods admit in a second.")
	poolRejected  = fleetPool("rejected_per_second", "Requests that the pods refuse in a second or, in mode Shadow, would refuse.")

	poolDescs = []*prometheus.Desc{
		poolEnforcers, poolDesired, poolLimit, poolInFlight, poolGranted, poolQueued, poolHolders, poolFenced,
		poolOvershoot, poolWorst, poolBound, poolUnused, poolAdmitted, poolRejected,
	}
)

// fleetPool describes a figure over all pods; those of one pod are its sidecar's.
func fleetPool(name, help string) *prometheus.Desc {
	return newDesc("weir_fleet_pool_"+name, help, poolLabels)
}

func reportPool(out output, p *v1alpha1.ConcurrencyPool) {
	s := &p.Status
	if s.ObservedGeneration != p.Generation {
		return // nothing is known of this one
	}
	labels := []string{p.Namespace, p.Name}
	if e := s.Enforcement; e != nil {
		report(out, poolEnforcers, float64(e.Current), labels...)
		report(out, poolDesired, float64(e.Desired), labels...)
	}
	if s.Limit != nil {
		report(out, poolLimit, float64(s.Limit.Current), labels...)
	}
	reportKnown(out, poolInFlight, s.InFlight, labels...)
	reportKnown(out, poolGranted, s.Granted, labels...)
	reportKnown(out, poolQueued, s.Queued, labels...)
	reportKnown(out, poolHolders, s.Holders, labels...)
	reportKnown(out, poolFenced, s.Fenced, labels...)
	reportKnown(out, poolAdmitted, s.AdmittedPerSecond, labels...)
	reportKnown(out, poolRejected, s.RejectedPerSecond, labels...)
	if o := s.Overshoot; o != nil {
		reportKnown(out, poolOvershoot, o.Observed, labels...)
		reportKnown(out, poolWorst, o.Worst, labels...)
		reportKnown(out, poolBound, o.Bound, labels...)
	}
	if u := s.UnderUtilization; u != nil {
		reportRatio(out, poolUnused, u.ObservedBasisPoints, labels...)
	}
}
