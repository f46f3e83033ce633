package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/connlimit"
)

// silent opens connections that say nothing, and counts those that are open later than any may be.
func silent(n int) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		return held(ctx, n, func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", w.cluster.Controller.FleetAddress())
		})
	}
}

// idle opens connections that shake hands by TLS and begin HTTP/2, and then say nothing.
func idle(n int) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		config := w.tls()
		config.ServerName, config.NextProtos = fleetName, []string{"h2"}
		return held(ctx, n, func(ctx context.Context) (net.Conn, error) {
			conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", w.cluster.Controller.FleetAddress())
			if err != nil {
				return nil, err
			}
			_, err = framer(conn)
			return conn, err
		})
	}
}

// held opens connections, and counts those that the peer has not ended after a while.
func held(ctx context.Context, n int, dial func(context.Context) (net.Conn, error)) (string, error) {
	const most = connlimit.Timeout + 10*time.Second
	ends := make(chan bool, n)
	dialing := make(chan struct{}, 64)
	for range n {
		go func() {
			dialing <- struct{}{}
			dialed, cancel := context.WithTimeout(ctx, most)
			conn, err := dial(dialed)
			cancel()
			<-dialing
			if err != nil {
				ends <- true
				return
			}
			defer conn.Close()
			_ = conn.SetReadDeadline(time.Now().Add(most))
			_, err = io.Copy(io.Discard, conn)
			late, ok := errors.AsType[net.Error](err)
			ends <- !ok || !late.Timeout()
		}()
	}
	open := 0
	for range n {
		if !<-ends {
			open++
		}
	}
	return fmt.Sprintf("%d of %d are open", open, n), nil
}

func oldTLSAt(address func(*world) string) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		config := w.tls()
		config.ServerName = fleetName
		config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS12
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address(w))
		if err != nil {
			return err.Error(), nil
		}
		_ = conn.Close()
		return "a handshake", nil
	}
}
