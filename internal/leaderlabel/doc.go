// Package leaderlabel keeps a label on the pod of the leading replica, so that a
// Service can select the leader and nobody else.
package leaderlabel
