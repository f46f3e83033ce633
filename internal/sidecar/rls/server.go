package rls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
)

// Bounds of a connection.
const (
	// maxMessage is more than Envoy makes of the headers of a request by its defaults,
	// so that no choice of headers makes a call fail.
	maxMessage        = 1 << 20
	maxHeaders        = 32 << 10
	maxCalls          = 1024 // at once
	connectionTimeout = 5 * time.Second
	// keptWorkers are goroutines that answer one call after another: a new one for each
	// call would spend a tenth of its time on making its stack larger. Calls that find
	// none idle get one of their own.
	keptWorkers = 32
)

// A Decider decides calls; see enforce.Enforcer.
type Decider interface {
	DecideDescriptors(ctx context.Context, domain string, ds []enforce.Descriptor) (enforce.Ruling, error)
}

// Config is what a Server is made of.
type Config struct {
	Address string // host:port to listen on
	Decider Decider
	Metrics *metrics.Metrics
	Log     *slog.Logger
}

// A Server serves one listener.
type Server struct {
	grpc     *grpc.Server
	listener net.Listener
}

// Listen opens the address and returns a server that does not serve yet. Close
// releases it. The metrics of calls are registered with cfg.Metrics.
func Listen(ctx context.Context, cfg Config) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w: free the port or choose another", cfg.Address, err)
	}
	answers := newService(cfg)
	s := &Server{
		listener: listener,
		grpc: grpc.NewServer(
			grpc.ForceServerCodecV2(newCodec(answers.defect)),
			grpc.MaxRecvMsgSize(maxMessage),
			grpc.MaxHeaderListSize(maxHeaders),
			grpc.MaxConcurrentStreams(maxCalls),
			grpc.ConnectionTimeout(connectionTimeout),
			grpc.NumStreamWorkers(keptWorkers),
		),
	}
	ratelimitv3.RegisterRateLimitServiceServer(s.grpc, answers)
	return s, nil
}

// Address returns where the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Serve serves until the server is drained or closed.
func (s *Server) Serve() error {
	if err := s.grpc.Serve(s.listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve %s: %w", s.listener.Addr(), err)
	}
	return nil
}

// Drain accepts no more calls and waits for those in flight until ctx is done. Calls
// still in flight then are cut off.
func (s *Server) Drain(ctx context.Context) {
	stop := context.AfterFunc(ctx, s.grpc.Stop)
	defer stop()
	s.grpc.GracefulStop()
}

// Close cuts everything off.
func (s *Server) Close() {
	s.grpc.Stop()
	_ = s.listener.Close() // when it was never served
}
