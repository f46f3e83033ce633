// Package leadership tells whether this process surely leads, and marks its pod.
//
// Leader election notices a lost lease late in a process that was suspended;
// whoever grants something that two leaders must not both grant asks Lock.Held at
// every grant. Labeler keeps a label on the leader's pod, so that a Service can
// select the leader and nobody else.
package leadership
