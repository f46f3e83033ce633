//go:build !linux

package framing

import "net"

// canWatch reports that a client that closed its sending side is taken to have left, and that
// idle connections are not parked.
func canWatch(net.Conn) bool { return false }

func isReset(net.Conn) bool { return true }

func unread(net.Conn) bool { return false }

func await(net.Conn) bool { return false }
