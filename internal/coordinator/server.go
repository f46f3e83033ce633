package coordinator

import (
	"crypto/tls"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/weir-dev/weir/internal/coordinator/connlimit"
	"github.com/weir-dev/weir/internal/fleetpb"
)

// newServer returns the server of the streams of sidecars while the process lives: those
// that wait for it to lead, and those that are served by its term. They come through the listener, which bounds them.
func (c *Coordinator) newServer(through *connlimit.Listener) *grpc.Server {
	config := c.TLS.Clone()
	config.MinVersion = tls.VersionTLS13
	server := grpc.NewServer(
		grpc.Creds(through.Credentials(credentials.NewTLS(config))),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.MaxConcurrentStreams(2), // the next while the last one ends
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeaders),
		// Thousands of connections that send a little each second are not to hold the
		// buffers of a few that send all the time.
		grpc.ReadBufferSize(connectionBuffer),
		grpc.WriteBufferSize(connectionBuffer),
		grpc.StaticStreamWindowSize(receiveWindow),
		grpc.StaticConnWindowSize(receiveWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 3 * time.Second, Timeout: 2 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	)
	fleetpb.RegisterFleetServer(server, &service{c: c})
	return server
}

// stopServer ends every stream that is left. Messages that were sent before are still
// delivered, unless that takes longer than partTimeout.
func stopServer(s *grpc.Server) {
	late := time.AfterFunc(partTimeout, s.Stop)
	defer late.Stop()
	s.GracefulStop()
}
