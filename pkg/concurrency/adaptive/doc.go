// Package adaptive infers from the latency of requests how many a backend bears at
// once.
//
// A Limit is fed a sample of each request that was served and moves its estimate once
// in about two latencies:
//
//   - Gradient2 (Netflix concurrency-limits, 2018): the limit is scaled by how much
//     latency rose over its baseline, the latency without load, and a queue of its
//     square root is added. It rests where latency is a little over Tolerance times
//     the baseline.
//   - AIMD (Chiu and Jain, 1989): up by one when latency is within Tolerance times the
//     baseline, down by a factor when it is not or a request was dropped.
//   - Fixed: the limit is Max.
//
// Until there is a sign of load the limit grows fast, as in TCP's slow start (Jacobson,
// 1988).
//
// Latency under load that lasts is not taken for the backend's own: where the baseline is
// in doubt, load is held down for a moment to measure it, as in BBR (Cardwell and others,
// 2016). See Baseline.
//
// Many holders in front of one backend each estimate what it bears from all of them
// together, and each may use a share of that only. Three things follow.
//
//   - Whether a request says something about the limit is judged by the ceiling that was
//     in force for its holder, not by the estimate: a holder with a third of the limit
//     never has half of it in flight.
//   - The limit that the fleet works by is corrected, which a holder hears from Follow.
//     An estimate that nobody tried yet is not corrected further.
//   - All hold their load down at the same time when latency without load is measured.
//
// The package is pure: time is an argument, and there is no clock, timer, goroutine or
// randomness. Nothing that is safe rests on what it infers.
package adaptive
