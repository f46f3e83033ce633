//go:build !linux

package membudget

import (
	"net"
	"syscall"
)

// BoundListener leaves the kernel its bounds.
func BoundListener(string, string, syscall.RawConn) error { return nil }

// BoundAccepted leaves the kernel its bounds.
func BoundAccepted(net.Conn) error { return nil }

// BoundApp leaves the kernel its bounds.
func BoundApp(string, string, syscall.RawConn) error { return nil }
