package fleet

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/policy"
)

const (
	connectTimeout = 5 * time.Second
	// A connection on which nothing is heard for this long is asked for a sign of
	// life, and given up when there is none for half as long.
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
}

func newDialer(cfg Config) (dialer, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cfg.CABundle) {
		return dialer{}, errors.New("the CA bundle holds no PEM certificate")
	}
	var dial []grpc.DialOption
	if cfg.Dial != nil {
		dial = append(dial, grpc.WithContextDialer(cfg.Dial))
	}
	return dialer{options: append(dial,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			RootCAs: roots, ServerName: cfg.ServerName, MinVersion: tls.VersionTLS13,
		})),
		grpc.WithPerRPCCredentials(tokenFile(cfg.TokenFile)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: grpcbackoff.DefaultConfig, MinConnectTimeout: connectTimeout}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: silence, Timeout: silence / 2}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(policy.MaxSize+1<<20)),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
	)}, nil
}

// open opens a stream to an address, host:port.
func (d dialer) open(ctx context.Context, address string) (*way, error) {
	conn, err := grpc.NewClient("dns:///"+address, d.options...)
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

// A backoff says how long to wait before the next attempt: longer after every
// failure, and at random so that a fleet does not return in step.
type backoff struct {
	failures int
	longest  time.Duration // 0: longestPause
}

// The longest pause is short: a new leader waits only a limited time before it takes
// every sidecar that can come back to be back.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = time.Second
	// longestBeside is the longest pause of a client that waits at a replica. A fleet that asks
	// the address of the leader each second has most of its sidecars begin a handshake with the
	// next one just as that leads, which serves them over the streams that wait.
	longestBeside = 3 * time.Second
)

func (b *backoff) reset() { b.failures = 0 }

func (b *backoff) next() time.Duration {
	pause := min(firstPause<<min(b.failures, 16), cmp.Or(b.longest, longestPause))
	b.failures++
	return pause/2 + rand.N(pause/2)
}
