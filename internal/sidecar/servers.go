package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/proxy"
	"github.com/weir-dev/weir/internal/sidecar/proxy/frames"
	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
)

// Time-outs and bounds of a server that faces clients.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 75 * time.Second
	maxHeader     = 32 << 10
)

// http2 are the bounds of HTTP/2 connections, which net/http also uses to answer rapid
// resets: handlers of streams that were reset count until they return. A connection
// holds no more than a window of what its streams receive. One whose peer is gone or
// does not read is closed, which gives slots and the app's connections back.
var http2 = http.HTTP2Config{
	MaxConcurrentStreams:          250,
	MaxDecoderHeaderTableSize:     4 << 10,
	MaxEncoderHeaderTableSize:     4 << 10,
	MaxReadFrameSize:              16 << 10,
	MaxReceiveBufferPerConnection: membudget.WindowsBytes,
	MaxReceiveBufferPerStream:     membudget.WindowBytes,
	SendPingTimeout:               30 * time.Second,
	PingTimeout:                   15 * time.Second,
	WriteByteTimeout:              30 * time.Second,
}

// A server serves one listener. Requests on it are in flight until their handler
// returned, also after they became a tunnel that net/http no longer counts.
type server struct {
	http     *http.Server
	streams  *frames.Server // of HTTP/2; nil where http serves it
	listener net.Listener
	inFlight sync.WaitGroup
	leaving  atomic.Bool        // connections end with the request they are at
	abort    context.CancelFunc // ends the requests in flight
}

// listen opens address and returns a server that does not serve yet. It counts the
// connections that malformed framing broke off, and admits what the port has memory for. HTTP/2 is
// served by streams, or by h where that is nil.
func listen(ctx context.Context, address string, h http.Handler, malformed prometheus.Counter, log *slog.Logger, port *membudget.Port, streams *frames.Server) (*server, error) {
	config := net.ListenConfig{Control: membudget.BoundListener}
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w: free the port or choose another", address, err)
	}
	requests, abort := context.WithCancel(context.WithoutCancel(ctx))
	s := &server{abort: abort, streams: streams}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	var http2Server framing.HTTP2
	if streams != nil {
		http2Server = streams.Serve
	} else {
		protocols.SetUnencryptedHTTP2(true)
	}
	s.listener = framing.Listen(listener, malformed.Inc, port, http2Server)
	s.http = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor == 2 && r.Context().Err() != nil {
				panic(http.ErrAbortHandler) // reset before it was begun: it costs nothing, and is not admitted
			}
			s.inFlight.Add(1)
			defer s.inFlight.Done()
			taken, ok := framing.Admit(r)
			if !ok {
				proxy.RefuseForMemory(w, r)
				return
			}
			defer taken.Done()
			if s.leaving.Load() && r.Header.Get("Upgrade") == "" {
				w.Header().Set("Connection", "close") // of HTTP/2 it becomes GOAWAY
			}
			h.ServeHTTP(w, r)
		}),
		Protocols:                    protocols,
		HTTP2:                        &http2,
		ReadHeaderTimeout:            headerTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true, // "OPTIONS *" is for the app
		BaseContext:                  func(net.Listener) context.Context { return requests },
		ConnContext:                  framing.Context,
		ConnState:                    framing.State,
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// serve serves until the server is drained or closed.
func (s *server) serve() error {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.listener.Addr(), err)
	}
	return nil
}

// leave has connections end with the request they are at.
func (s *server) leave() {
	s.leaving.Store(true)
	if s.streams != nil {
		s.streams.Leave()
	}
}

// drain accepts no more connections and waits for the requests in flight until ctx is
// done. Requests still in flight then are cut off.
func (s *server) drain(ctx context.Context) {
	var all sync.WaitGroup
	if s.streams != nil {
		all.Go(func() { s.streams.Drain(ctx) })
	}
	all.Go(func() { s.drainHTTP1(ctx) })
	all.Wait()
}

func (s *server) drainHTTP1(ctx context.Context) {
	if s.http.Shutdown(ctx) != nil {
		s.close()
		return
	}
	finished := make(chan struct{}) // of tunnels, which Shutdown does not know
	go func() {
		s.inFlight.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-ctx.Done():
	}
	s.abort()
	<-finished
}

// close cuts everything off.
func (s *server) close() {
	s.abort()
	_ = s.http.Close()
	_ = s.listener.Close()
	if s.streams != nil {
		s.streams.Close()
	}
	s.inFlight.Wait()
}
