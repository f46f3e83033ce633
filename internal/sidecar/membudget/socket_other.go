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

// widen leaves the kernel its bounds.
func widen(net.Conn) error { return nil }

// BoundApp leaves the kernel its bounds.
func BoundApp(string, string, syscall.RawConn) error { return nil }

// BoundRoomyApp leaves the kernel its bounds.
func BoundRoomyApp(string, string, syscall.RawConn) error { return nil }

// WidenAccepted leaves the kernel its bounds.
func WidenAccepted(net.Conn, bool) error { return nil }
