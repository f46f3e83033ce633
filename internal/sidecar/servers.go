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
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
	"github.com/weir-dev/weir/internal/sidecar/proxy/frames"
	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
	"github.com/weir-dev/weir/internal/sidecar/proxy/http1"
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

// A server serves one listener: an inbound port, or by net/http one of those that only the pod and
// its probes ask.
type server interface {
	// serve serves until the server is drained or closed.
	serve() error
	// leave has connections end with the request they are at.
	leave()
	// drain accepts no more connections and waits for the requests in flight until ctx is
	// done. Requests still in flight then are cut off.
	drain(ctx context.Context)
	// close cuts everything off.
	close()
}

// An inboundServer serves an inbound port, or that of Envoy's rate limit service.
type inboundServer struct {
	requests *http1.Server
	streams  *frames.Server // of HTTP/2
	listener net.Listener
	port     *membudget.Port
}

// listenInbound opens address and returns a server in front of the app of p, which h decides for. It
// does not serve yet.
func listenInbound(ctx context.Context, address string, p *proxy.Proxy, h exchange.Handler, port *membudget.Port) (*inboundServer, error) {
	streams := proxy.NewHTTP2(p, h)
	return listenBy(ctx, address, proxy.NewServer(p, h, streams), streams, port)
}

// listenBy opens address and returns a server that serves by requests and streams, and closes them. It
// does not serve yet. On an error they are closed.
func listenBy(ctx context.Context, address string, requests *http1.Server, streams *frames.Server, port *membudget.Port) (*inboundServer, error) {
	listener, err := open(ctx, address)
	if err != nil {
		requests.Close()
		streams.Close()
		return nil, err
	}
	return &inboundServer{requests: requests, streams: streams, listener: listener, port: port}, nil
}

func (s *inboundServer) serve() error {
	if err := s.requests.Serve(s.listener, s.port); err != nil {
		return fmt.Errorf("serve %s: %w", s.listener.Addr(), err)
	}
	return nil
}

func (s *inboundServer) leave() {
	s.requests.Leave()
	s.streams.Leave()
}

func (s *inboundServer) drain(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { s.streams.Drain(ctx) })
	all.Go(func() { s.requests.Drain(ctx) })
	all.Wait()
}

func (s *inboundServer) close() {
	s.requests.Close()
	_ = s.listener.Close()
	s.streams.Close()
}

// A plainServer serves requests by net/http. Each ends within its handler.
type plainServer struct {
	http     *http.Server
	listener net.Listener
	inFlight sync.WaitGroup
	leaving  atomic.Bool        // connections end with the request they are at
	abort    context.CancelFunc // ends the requests in flight
}

// open listens on an address.
func open(ctx context.Context, address string) (net.Listener, error) {
	config := net.ListenConfig{Control: membudget.BoundListener}
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w: free the port or choose another", address, err)
	}
	return listener, nil
}

// listen opens address and returns a server that does not serve yet; see serveOn.
func listen(ctx context.Context, address string, h http.Handler, malformed prometheus.Counter, log *slog.Logger, port *membudget.Port) (*plainServer, error) {
	listener, err := open(ctx, address)
	if err != nil {
		return nil, err
	}
	return serveOn(ctx, listener, h, malformed, log, port), nil
}

// serveOn returns a server that does not serve yet. It counts the connections that malformed
// framing broke off, and admits what the port has memory for.
func serveOn(ctx context.Context, listener net.Listener, h http.Handler, malformed prometheus.Counter, log *slog.Logger, port *membudget.Port) *plainServer {
	requests, abort := context.WithCancel(context.WithoutCancel(ctx))
	s := &plainServer{abort: abort, listener: framing.Listen(listener, malformed.Inc, port)}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
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
			boundBody(w, r)
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
	return s
}

func (s *plainServer) serve() error {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.listener.Addr(), err)
	}
	return nil
}

func (s *plainServer) leave() { s.leaving.Store(true) }

func (s *plainServer) drain(ctx context.Context) {
	if s.http.Shutdown(ctx) != nil {
		s.close()
	}
	s.abort()
	s.inFlight.Wait()
}

func (s *plainServer) close() {
	s.abort()
	_ = s.http.Close()
	_ = s.listener.Close()
	s.inFlight.Wait()
}
