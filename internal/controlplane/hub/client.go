package hub

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/weir-dev/weir/internal/federationpb"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/store"
)

const (
	connectTimeout = 3 * time.Second
	// The pause between attempts to connect is short: a new leader serves at once.
	firstPause, longestPause = 100 * time.Millisecond, time.Second
	// A connection on which nothing is received for this time is pinged, and closed when
	// there is no answer within half of it.
	silence  = 10 * time.Second
	maxState = 4 << 20 // bytes of an answer
)

// A Client is a hub as a coordinator. It is safe for concurrent use.
type Client struct {
	*connection
	release func() // called once
}

var _ Coordinator = (*Client)(nil)

// A connection is shared by the clients of one hub with the same credentials.
type connection struct {
	identity
	endpoint string
	conn     *grpc.ClientConn
	calls    federationpb.FederationClient
	outcome  outcome
	clients  int // guarded by Connections.mu
}

// Member returns the name that the certificate proves.
func (c *Client) Member() string { return c.member() }

// Apply implements federation.Coordinator. The error is a *RefusedError when the hub is
// there and does not serve this member.
func (c *Client) Apply(ctx context.Context, id string, p ledger.Params, cmd ledger.Command) (ledger.Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := c.calls.Apply(ctx, &federationpb.ApplyRequest{
		Budget: id, WindowMicros: int64(p.Window), OtherWindowsMicros: microsTo(p.Others), Command: commandTo(cmd),
	})
	if err != nil {
		return ledger.Grant{}, c.typed(err)
	}
	g, err := grantFrom(answer)
	if err != nil {
		return ledger.Grant{}, c.misunderstood(err)
	}
	return g, nil
}

// Observe implements federation.Coordinator. The error is that of Apply.
func (c *Client) Observe(ctx context.Context, id string) (ledger.State, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := c.calls.Observe(ctx, &federationpb.ObserveRequest{Budget: id})
	if err != nil {
		return ledger.State{}, c.typed(err)
	}
	s, err := stateFrom(answer)
	if err != nil {
		return ledger.State{}, c.misunderstood(err)
	}
	return s, nil
}

// Close closes the connection, and so ends what is under way, when no other client uses
// it. It may be called more than once.
func (c *Client) Close() { c.release() }

// misunderstood is the error for an answer that no hub of this version gives.
func (c *connection) misunderstood(err error) error {
	return &RefusedError{
		Endpoint: c.endpoint, Reason: Invalid,
		Message: "the answer is not one that a hub gives: run the same version of Weir in both clusters", Cause: err,
	}
}

func dial(endpoint string, own identity, control store.Control) (*connection, error) {
	c := &connection{identity: own, endpoint: endpoint, outcome: outcome{control: control}}
	conn, err := grpc.NewClient("dns:///"+endpoint,
		grpc.WithTransportCredentials(&witness{TransportCredentials: credentials.NewTLS(own.tls()), outcome: &c.outcome}),
		grpc.WithPerRPCCredentials(own.token),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: connectTimeout, Backoff: grpcbackoff.Config{
			BaseDelay: firstPause, Multiplier: 2, Jitter: 0.2, MaxDelay: longestPause,
		}}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: silence, Timeout: silence / 2, PermitWithoutStream: true}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxState)),
		grpc.WithContextDialer(c.outcome.dial),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, err
	}
	c.conn, c.calls = conn, federationpb.NewFederationClient(conn)
	return c, nil
}

// Connections are those of this process to hubs: one for each endpoint and content of
// the Secret. The zero value has none. They are safe for concurrent use.
type Connections struct {
	// Control is asked about every address that is dialled. Nil allows all.
	Control store.Control

	mu   sync.Mutex
	open map[string]*connection // by endpoint and digest of the Secret
}

// Open returns a client of the hub at endpoint, host:port, that authenticates with the data
// of a Secret: ca.crt, tls.crt, tls.key and token. It does not wait for a connection, which
// clients of the same hub with the same credentials share. The caller closes the client.
// When the content of the Secret changes, it opens another and closes this one.
//
// The error names what is wrong with the endpoint or the Secret, and the cure.
func (c *Connections) Open(endpoint string, secret map[string][]byte) (*Client, error) {
	if err := checkEndpoint(endpoint); err != nil {
		return nil, err
	}
	own, err := newIdentity(secret)
	if err != nil {
		return nil, err
	}
	name := endpoint + " " + own.digest
	c.mu.Lock()
	defer c.mu.Unlock()
	shared, ok := c.open[name]
	if !ok {
		if shared, err = dial(endpoint, own, c.Control); err != nil {
			return nil, err
		}
		if c.open == nil {
			c.open = map[string]*connection{}
		}
		c.open[name] = shared
	}
	shared.clients++
	return &Client{connection: shared, release: sync.OnceFunc(func() { c.leave(name) })}, nil
}

// leave closes a connection that its last client leaves.
func (c *Connections) leave(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	shared := c.open[name]
	if shared.clients--; shared.clients == 0 {
		delete(c.open, name)
		_ = shared.conn.Close() // fails only when it is closed already
	}
}
