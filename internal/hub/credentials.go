package hub

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CredentialsConfig is what Credentials work with.
type CredentialsConfig struct {
	// Client asks the API server itself. A cache would lag behind, and would need to be
	// allowed to read every Secret.
	Client    client.Client
	Namespace string // the controller's
	Self      string // the hub's name among members, which gets no Secret
	Budgets   Budgets
	Names     []string // DNS names and IP addresses under which members reach the hub, at least one

	Interval time.Duration // between two looks at the Secrets; default 30 s
	Clock    clock.Clock   // default: the real one
}

// Credentials keep the authority of the federation, the server's certificate and a
// Secret for each member.
type Credentials struct {
	config CredentialsConfig
}

// NewCredentials returns Credentials that do nothing until Start.
func NewCredentials(c CredentialsConfig) *Credentials { return &Credentials{config: c} }

// NeedLeaderElection reports that only the leader writes.
func (*Credentials) NeedLeaderElection() bool { return true }

// Refresh makes Start look at once whether a member is new. It does not block.
func (c *Credentials) Refresh() {}

// Start keeps the Secrets until ctx is done and then returns nil.
func (c *Credentials) Start(ctx context.Context) error { panic("hub: not built") }
