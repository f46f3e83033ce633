package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/policy"
)

const (
	dialTimeout = 5 * time.Second // over TCP
	// connectTimeout is for the handshake, too. A controller to which a whole fleet comes takes a while for all.
	// If a sidecar gives up early, the controller has to start its handshake again.
	connectTimeout = 20 * time.Second
	// A connection on which nothing is heard for this long is asked for a sign of
	// life, and given up when there is none for as long again.
	silence = 10 * time.Second
)

// A way is a stream and its connection.
type way struct {
	fleetpb.Fleet_ConnectClient
	address string
	end     func()
	term    uint64 // in which the controller says to lead; 0: it did not say
}

// A dialer opens streams. Every stream has a connection of its own, so that the name is
// resolved again and a stale connection is never used twice.
type dialer struct {
	options []grpc.DialOption
	dial    func(ctx context.Context, address string) (net.Conn, error)
}

// errCrowded says that a controller was reached and did not let this sidecar in. Most likely it has too
// much to do.
var errCrowded = errors.New("the controller may be crowded")

func newDialer(cfg Config) (dialer, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cfg.CABundle) {
		return dialer{}, errors.New("the CA bundle holds no PEM certificate")
	}
	dial := cfg.Dial
	if dial == nil {
		dial = func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{Timeout: dialTimeout, KeepAlive: -1}).DialContext(ctx, "tcp", address) // that of gRPC is enough
		}
	}
	return dialer{dial: dial, options: []grpc.DialOption{
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			RootCAs: roots, ServerName: cfg.ServerName, MinVersion: tls.VersionTLS13,
		})),
		grpc.WithPerRPCCredentials(tokenFile(cfg.TokenFile)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: grpcbackoff.DefaultConfig, MinConnectTimeout: connectTimeout}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: silence, Timeout: silence}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(policy.MaxSize + 1<<20)),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
	}}, nil
}

// open opens a stream to an address, host:port. The error is errCrowded where something listens there.
func (d dialer) open(ctx context.Context, address string) (*way, error) {
	var reached atomic.Bool
	dial := grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := d.dial(ctx, address)
		reached.Store(err == nil)
		return conn, err
	})
	conn, err := grpc.NewClient("dns:///"+address, append(slices.Clip(d.options), dial)...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	end := func() {
		cancel()
		_ = conn.Close()
	}
	stream, err := fleetpb.NewFleetClient(conn).Connect(ctx)
	if err != nil {
		end()
		if reached.Load() {
			err = crowded{err}
		}
		return nil, err
	}
	return &way{Fleet_ConnectClient: stream, address: address, end: end}, nil
}

// tokenFile authenticates streams by the token in a file, which is replaced before the
// token expires.
type tokenFile string

// GetRequestMetadata returns the bearer token as it is now.
func (f tokenFile) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, err := os.ReadFile(string(f))
	if err != nil {
		return nil, fmt.Errorf("read token: %w", err)
	}
	return map[string]string{"authorization": "Bearer " + strings.TrimSpace(string(token))}, nil
}

// RequireTransportSecurity keeps the token off connections without TLS.
func (tokenFile) RequireTransportSecurity() bool { return true }

// crowded is an error that is errCrowded, too.
type crowded struct{ error }

// Unwrap is what errors.Is looks for.
func (c crowded) Unwrap() []error { return []error{c.error, errCrowded} }

// GRPCStatus is what status.Convert looks for.
func (c crowded) GRPCStatus() *status.Status { return status.Convert(c.error) }

// unserved returns the error of a stream that was opened, and then not served: errCrowded where the controller
// has no room or did not answer in time.
func unserved(err error) error {
	switch status.Code(err) { // others say that it does not lead, or what is wrong with this sidecar
	case codes.ResourceExhausted, codes.DeadlineExceeded, codes.Canceled:
		return crowded{err}
	default:
		return err
	}
}

// A backoff says how long to wait before the next attempt: longer after every
// failure, and at random so that a fleet does not return in step.
type backoff struct {
	failures int
	crowded  int // of them, the last ones in a row that were errCrowded
}

const (
	firstPause = 200 * time.Millisecond
	// longestPause is the longest pause while nothing listens. Such an attempt costs little.
	longestPause = time.Second
	// longestBeside is the longest pause of a client that waits at a replica. A fleet that asks
	// the address of the leader each second has most of its sidecars begin a handshake with the
	// next one just as that leads, which serves them over the streams that wait.
	longestBeside = 3 * time.Second
	// longestCrowded is the longest pause after a controller was reached that did not let this sidecar in. It
	// spreads the attempts of a fleet that is larger than what a controller can take at once. If these
	// came more often, they would take all the processor time that the handshakes need.
	longestCrowded = 10 * time.Second
)

func (b *backoff) reset() { *b = backoff{} }

// next returns the pause after a failure with the error. It is not longer than longest, unless the controller
// may be crowded.
func (b *backoff) next(longest time.Duration, err error) time.Duration {
	failures := b.failures
	if errors.Is(err, errCrowded) {
		failures, longest = b.crowded, longestCrowded
		b.crowded++
	} else {
		b.crowded = 0
	}
	b.failures++
	pause := min(firstPause<<min(failures, 16), longest)
	return pause/2 + rand.N(pause/2)
}
