package hub

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/pkg/federation"
)

// ServerConfig is what a Server works with.
type ServerConfig struct {
	Address     string                 // host:port to listen on
	Coordinator federation.Coordinator // keeps the budgets
	Budgets     Budgets
	Credentials *Credentials
	Leadership  Leadership            // nil: leadership is held until Start's context is done
	Registerer  prometheus.Registerer // nil: metrics are not exposed
}

// A Server serves members of budgets while its process leads.
type Server struct {
	ServerConfig
}

// NewServer returns a Server that does nothing until Start.
func NewServer(c ServerConfig) *Server { return &Server{ServerConfig: c} }

// NeedLeaderElection reports that only the leader serves.
func (*Server) NeedLeaderElection() bool { return true }

// Start serves until ctx is done and what is under way has ended, at most a few
// seconds later. It is called once.
func (s *Server) Start(ctx context.Context) error { panic("hub: not built") }
