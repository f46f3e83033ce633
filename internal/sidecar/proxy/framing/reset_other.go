//go:build !linux

package framing

import "net"

// CanWatch reports that there is no way to look at a connection without reading from it, so that
// idle connections are not parked.
func CanWatch(net.Conn) bool { return false }

// IsReset reports that a client that sends nothing more has left.
func IsReset(net.Conn) bool { return true }

// Unread reports that nothing is known to have come.
func Unread(net.Conn) bool { return false }

func await(net.Conn) bool { return false }
