package hub

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/internal/federationpb"
)

const (
	handshakeTimeout = 5 * time.Second // until a connection has authenticated
	callTimeout      = 5 * time.Second // for one call
	partTimeout      = 2 * time.Second // for calls under way when the leader steps down
	maxCommand       = 64 << 10        // bytes
	maxCalls         = 256             // of one connection at a time
)

// ServerConfig is what a Server works with.
type ServerConfig struct {
	Address     string // host:port to listen on
	Coordinator Coordinator
	Audits      *Audits // nil: the values of budgets with a key are not measured
	Budgets     Budgets
	Credentials *Credentials
	Leadership  Leadership            // nil: leadership is held until Start's context is done
	Registerer  prometheus.Registerer // nil: metrics are not exposed
}

// A Server serves members of budgets while its process leads.
type Server struct {
	ServerConfig
	metrics *metrics
	listen  func(ctx context.Context, address string) (net.Listener, error)
}

// NewServer returns a Server that does nothing until Start.
func NewServer(c ServerConfig) *Server {
	return &Server{
		ServerConfig: c,
		metrics:      newMetrics(c.Registerer),
		listen: func(ctx context.Context, address string) (net.Listener, error) {
			return new(net.ListenConfig).Listen(ctx, "tcp", address)
		},
	}
}

// NeedLeaderElection reports that only the leader serves.
func (*Server) NeedLeaderElection() bool { return true }

// Start serves until ctx is done and what is under way has ended, at most a few
// seconds later.
func (s *Server) Start(ctx context.Context) error {
	listener, err := s.listen(ctx, s.Address)
	if err != nil {
		return fmt.Errorf("listen for members of budgets: %w", err)
	}
	log.FromContext(ctx).WithName("hub").Info("serving members of budgets", "address", listener.Addr().String())
	server := s.newServer()
	var running sync.WaitGroup
	defer running.Wait()
	failed := make(chan error, 1)
	running.Go(func() { failed <- server.Serve(listener) })
	select {
	case err := <-failed:
		server.Stop()
		return fmt.Errorf("serve members of budgets: %w", err)
	case <-ctx.Done():
		late := time.AfterFunc(partTimeout, server.Stop)
		defer late.Stop()
		server.GracefulStop()
		return nil
	}
}

func (s *Server) newServer() *grpc.Server {
	members := &throttledCredentials{
		TransportCredentials: credentials.NewTLS(s.Credentials.serverTLS()),
		metrics:              s.metrics, limit: newHandshakeLimit(s.Credentials.config.Clock),
	}
	server := grpc.NewServer(
		grpc.Creds(members),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.MaxRecvMsgSize(maxCommand),
		grpc.MaxConcurrentStreams(maxCalls),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: silence / 2, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(s.intercept),
	)
	federationpb.RegisterFederationServer(server, &service{Server: s})
	return server
}
