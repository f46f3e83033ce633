package sidecar

import (
	"context"
	"net"
	"slices"
	"time"
)

// lingerPause is the time from one look at the app to the next.
const lingerPause = 250 * time.Millisecond

// linger goes on serving for as long as the app does, at most for the configured time. A
// sidecar in the classic form is signalled to stop at the same time as the app, while
// clients have yet to hear that the pod ends. Without a sidecar the app would take
// requests until it closes its port, so the sidecar takes them until then. Connections
// that are kept for later requests end with the one they are at, as the app's would.
func (p *process) linger(ctx context.Context, f *front, failed <-chan error) error {
	if p.cfg.linger == 0 {
		return nil
	}
	for _, s := range f.deciding {
		s.leave()
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.linger)
	defer cancel()
	pause := time.NewTicker(lingerPause)
	defer pause.Stop()
	for len(p.cfg.inbound) == 0 || p.appAccepts(ctx) {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		}
	}
	return nil
}

// appAccepts reports whether one of the app's ports takes connections.
func (p *process) appAccepts(ctx context.Context) bool {
	return slices.ContainsFunc(p.cfg.inbound, func(in inbound) bool {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", in.app)
		if err != nil {
			return false
		}
		_ = conn.Close() // it was only to see whether it opens
		return true
	})
}
