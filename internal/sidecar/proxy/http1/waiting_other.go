//go:build !linux

package http1

// A waiting keeps no connections: those that are idle have a goroutine.
type waiting struct{}

func (c *conn) park() bool { return false }

func (w *waiting) remove(*conn) bool { return false }

func (w *waiting) close() {}
