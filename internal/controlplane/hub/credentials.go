package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/internal/controlplane/certs"
)

// AuthoritySecret is the name of the Secret of the federation's authority and of the
// server's certificate, in the controller's namespace. Its key never leaves the hub.
const AuthoritySecret = "weir-federation"

const (
	defaultInterval = 30 * time.Second
	firstRetry      = time.Second // doubles with each further failure, up to the interval
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

	Interval time.Duration // between two looks at the Secrets of members; default 30 s
	Clock    clock.Clock   // default: the real one
}

// Credentials keep the authority of the federation, the server's certificate and a
// Secret for each member that Budgets admits. Nothing is made before a budget has another
// member than the hub. Secrets of members that no budget lists any more stay when they were
// used: the server refuses them, and their tokens are good again when they return. Others
// are deleted after a day, or when there are too many of them.
type Credentials struct {
	config    CredentialsConfig
	authority *certs.Manager
	keys      *keyring
	wake      chan struct{}
	users     sync.Map // names of members that authenticated themselves to this process
}

// NewCredentials returns Credentials that do nothing until Start.
func NewCredentials(c CredentialsConfig) *Credentials {
	if c.Interval == 0 {
		c.Interval = defaultInterval
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	out := &Credentials{
		config: c,
		authority: certs.New(c.Client, certs.Options{
			Secret: types.NamespacedName{Namespace: c.Namespace, Name: AuthoritySecret},
			Names:  c.Names, Clock: c.Clock,
		}),
		wake: make(chan struct{}, 1),
	}
	out.keys = newKeyring(out.token, c.Clock)
	return out
}

// NeedLeaderElection reports that only the leader writes.
func (*Credentials) NeedLeaderElection() bool { return true }

// Refresh makes Start look at once whether a member is new. It does not block.
func (c *Credentials) Refresh() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Start keeps the Secrets until ctx is done and then returns nil. A failure is logged
// and tried again: what members have stays good for months. It is called once.
func (c *Credentials) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("federation-credentials")
	var authority sync.WaitGroup
	defer authority.Wait()
	begin := sync.OnceFunc(func() {
		authority.Go(func() { _ = c.authority.Start(ctx) })
	})
	retry := firstRetry
	for {
		wait := c.config.Interval
		members := c.members()
		if len(members) > 0 {
			begin()
		}
		if err := c.reconcile(ctx, members); err == nil {
			retry = firstRetry
		} else if ctx.Err() == nil {
			wait = min(retry, c.config.Interval)
			retry = 2 * wait
			logger.Error(err, "The credentials of members are not as they should be, trying again", "after", wait.String())
		}
		timer := c.config.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-c.wake:
			timer.Stop()
		case <-timer.C():
		}
	}
}

// members returns the names of the members that need credentials, each once.
func (c *Credentials) members() []string { return c.config.Budgets.Credentialed() }

// reconcile reads the Secrets of all members at once, so that one that is new does not wait
// for the others, and writes those that are not as they should be.
func (c *Credentials) reconcile(ctx context.Context, members []string) error {
	if len(members) > 0 {
		select {
		case <-c.authority.Ready():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	found, err := c.secrets(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, member := range members {
		if err := c.ensure(ctx, member, found[member]); err != nil {
			errs = append(errs, fmt.Errorf("the Secret of member %s: %w", member, err))
		}
	}
	return errors.Join(append(errs, c.retire(ctx, found))...)
}

// serverTLS returns how the server authenticates, and which clients it admits: those with a
// certificate of the authority as it is at that moment.
func (c *Credentials) serverTLS() *tls.Config {
	base := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{"h2"},
		ClientAuth:             tls.RequireAndVerifyClientCert,
		GetCertificate:         c.authority.GetCertificate,
		SessionTicketsDisabled: true,
		Time:                   c.config.Clock.Now,
	}
	outer := base.Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		inner := base.Clone()
		inner.ClientCAs = x509.NewCertPool()
		inner.ClientCAs.AppendCertsFromPEM(c.authority.CABundle())
		return inner, nil
	}
	return outer
}
