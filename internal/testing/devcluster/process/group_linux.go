package process

import "syscall"

// ownGroup keeps the terminal's Ctrl-C away from the child, whose end is the
// parent's to order, and ends the child with the parent even when that is killed.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
