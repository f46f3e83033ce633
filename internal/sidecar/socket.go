package sidecar

import (
	"context"
	"fmt"
	"net"
	"os"
)

// openSocket listens on a Unix socket that every user of the machine may connect to: the
// containers that the directory is mounted into run as any. One that an earlier process has
// left there is replaced. The directory has to be there.
func openSocket(ctx context.Context, path string) (net.Listener, error) {
	if old, err := os.Lstat(path); err == nil && old.Mode().Type() == os.ModeSocket {
		_ = os.Remove(path) // Listen says why that failed
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err == nil {
		if err = os.Chmod(path, 0o666); err != nil { //nolint:gosec // as the loopback interface, it is for the whole pod
			_ = listener.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w: mount a directory there that uid %d may write to, with no other file of that name", path, err, os.Getuid())
	}
	return listener, nil
}
