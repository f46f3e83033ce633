//go:build !linux

package framing

import "net"

// canSeeReset reports that a client that closed its sending side is taken to have left.
func canSeeReset(net.Conn) bool { return false }

func isReset(net.Conn) bool { return true }

func unread(net.Conn) bool { return false }

// canAwait reports that idle connections are not parked.
func canAwait(net.Conn) bool { return false }

func await(net.Conn) bool { return false }
