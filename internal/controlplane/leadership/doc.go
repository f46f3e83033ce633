// Package leadership reports whether this process is certain to lead, and marks its pod.
//
// Leader election notices a lost lease late in a process that was suspended;
// code that grants something that two leaders must not both grant asks Lock.Covers at
// every grant. The Lease carries the clock by which the leader serves, so that the next
// one goes on after it, whatever the clocks of their nodes show. Labeler keeps a label on the leader's pod, so that a Service can
// select the leader alone.
package leadership
