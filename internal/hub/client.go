package hub

import (
	"context"

	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// Connections are those of this process to hubs: one for each endpoint and content of
// the Secret. The zero value has none. They are safe for concurrent use.
type Connections struct{}

// A Client is a hub as a coordinator. It is safe for concurrent use.
type Client struct{}

var _ federation.Coordinator = (*Client)(nil)

// Open returns a client of the hub at endpoint, host:port, that proves who it is by
// the data of a Secret: ca.crt, tls.crt, tls.key and token. It does not wait for a
// connection, which clients of the same hub with the same credentials share. The
// caller closes the client. When the content of the Secret changes, it opens another
// and closes this one.
//
// The error names what is wrong with the endpoint or the Secret, and the cure.
func (c *Connections) Open(endpoint string, secret map[string][]byte) (*Client, error) {
	panic("hub: not built")
}

// Member returns the name that the certificate proves.
func (c *Client) Member() string { panic("hub: not built") }

// Apply implements [federation.Coordinator]. The error is a *RefusedError when the
// hub does not serve this member.
func (c *Client) Apply(ctx context.Context, id string, p ledger.Params, cmd ledger.Command) (ledger.Grant, error) {
	panic("hub: not built")
}

// Observe implements [federation.Coordinator].
func (c *Client) Observe(ctx context.Context, id string) (ledger.State, error) {
	panic("hub: not built")
}

// Close ends what is under way, and closes the connection when no other client uses
// it. It may be called more than once.
func (c *Client) Close() { panic("hub: not built") }
