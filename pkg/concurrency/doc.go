// Package concurrency is the engine of a holder: it admits requests below the holder's
// share of a pool, the concurrency limit of a whole fleet.
//
// A Guard keeps one pool in one process. It beats: at every interval it reports to the
// coordinator what it has in flight and what limit it infers from latency, and is
// answered with its share. A request gets a slot while fewer are in flight than the
// ceiling, the smaller of the share and what the guard infers. Admitting never waits
// for the coordinator, only in the queue where there is one.
//
// # Why the fleet stays within its limit
//
// The coordinator grants a share only from what the reserves of all other holders
// leave (package pool). A holder does its part:
//
//   - A share ends at an instant counted on the monotonic clock from before the beat
//     was sent that it answers: its time to live, less what two clocks may part
//     meanwhile (200 ppm and 1 ms), less the margin. The coordinator counts the same
//     time from later on. So when it grants the share to others, the holder stopped
//     using it at least the margin ago, for any delay and any offset of the clocks.
//     Requests that end within the margin are over by then; those that may take longer
//     have to be aborted (OnFenced).
//   - A beat reports one snapshot, taken under the lock that admits: no report
//     confirms a share with the requests of another.
//   - An answer counts only if it answers a later beat than the one in force, and
//     shares of an earlier term or generation are refused.
//
// # A limit per key
//
// With Config.PerKey the limit is that of each key, such as a tenant. The share of the
// holder is then a part of it for every key, and the holder reports what it has in flight
// of the key that has the most. Shares and reserves of all holders together are at most
// the limit, so the requests of any one key are, too. Nothing about single keys leaves
// the process, and there may be any number of them.
//
// # Eager beats
//
// Besides the interval, a guard beats at once when that frees a share or fills one,
// MinInterval after its last beat at the earliest:
//
//   - pull: a request found no slot and the share is below an even part of the limit;
//   - push: what is in flight drained to a share that became smaller;
//   - acknowledge: the share became smaller, and what is in flight fits in already; or a
//     coordinator that lost its memory issued a share again.
//
// Freeing a share is of use only while somebody waits for it, which the last answer
// reports. Pulls that brought nothing for two intervals, in which all others have heard of
// the holder, stop: what others have in flight takes long.
//
// # What is not covered
//
// A process that is stopped between admitting a request and forwarding it forwards it
// when it goes on, however late. Requests admitted between the resume of a suspended
// machine and the watchdog's next look may still use a share that expired; see package
// monotonic. With LocalOnly a fleet that lost its coordinator admits what each holder
// infers.
//
// The package owns goroutines and timers. It sees coordinators only through the
// interface Coordinator.
package concurrency
