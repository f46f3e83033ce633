//go:build !linux

package process

import "syscall"

// ownGroup keeps the terminal's Ctrl-C away from the child, whose end is the
// parent's to order.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
