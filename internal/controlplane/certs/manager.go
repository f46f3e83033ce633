package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	defaultInterval = 30 * time.Second
	firstRetry      = time.Second // doubles with each further failure, up to the interval
)

var errNotReady = errors.New("the serving certificate is not there yet: the controller is still starting")

// Options of a Manager.
type Options struct {
	Secret types.NamespacedName // where the certificates are kept
	Names  []string             // DNS names and IP addresses of the servers, at least one

	// Follow has this replica serve what the Secret holds, and write nothing: others keep it
	// and publish its authority.
	Follow bool

	// Names of the webhook configurations that shall trust the authority.
	MutatingWebhooks, ValidatingWebhooks []string

	// Interval between two looks at the Secret and the webhook configurations, and
	// so the longest that damage lasts. Default 30 s.
	Interval time.Duration

	Clock clock.Clock // default: the real one
}

// A Manager keeps the certificates of this replica's servers. Its methods may be
// called at any time and by several goroutines.
type Manager struct {
	client  client.Client
	options Options
	expiry  *prometheus.Desc

	current atomic.Pointer[serving] // nil until ready
	ready   chan struct{}           // closed when current is first set
	once    sync.Once               // guards the closing of ready
}

// serving is what this replica serves and remembers.
type serving struct {
	bundle   bundle
	tls      *tls.Certificate
	caBundle []byte
}

var _ manager.LeaderElectionRunnable = (*Manager)(nil)

// New returns a Manager that does nothing until it is started. The client must
// read from the API server itself: a cache would lag behind the other replicas
// and would need to be allowed to read every Secret.
func New(c client.Client, options Options) *Manager {
	if options.Interval == 0 {
		options.Interval = defaultInterval
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Manager{client: c, options: options, expiry: Expiry(options.Secret.String()), ready: make(chan struct{})}
}

// NeedLeaderElection says that every replica runs a Manager.
func (m *Manager) NeedLeaderElection() bool { return false }

// Ready is closed once there is a certificate to serve.
func (m *Manager) Ready() <-chan struct{} { return m.ready }

// GetCertificate returns the certificate in force, for [tls.Config]. It does not
// block; before the Manager is ready it fails, and clients try again.
func (m *Manager) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if s := m.current.Load(); s != nil {
		return s.tls, nil
	}
	return nil, errNotReady
}

// CABundle returns the PEM of the authority, which the caller must not change;
// nil before the Manager is ready.
func (m *Manager) CABundle() []byte {
	if s := m.current.Load(); s != nil {
		return s.caBundle
	}
	return nil
}

// Start keeps the certificates until ctx is done and then returns nil. A failure
// is logged and tried again: what is served stays valid for days.
func (m *Manager) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("certs")
	retry := firstRetry
	for {
		wait := m.options.Interval
		if err := m.reconcile(ctx); err == nil {
			retry = firstRetry
		} else if ctx.Err() == nil {
			wait = min(retry, m.options.Interval)
			retry = 2 * wait
			logger.Error(err, "cannot issue or publish certificates; trying again", "after", wait.String())
		}
		timer := m.options.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// reconcile makes the Secret, what is served and the webhook configurations what
// they should be at present. The webhook configurations come last: they must not
// trust what no replica serves.
func (m *Manager) reconcile(ctx context.Context) error {
	sync := m.sync
	if m.options.Follow {
		sync = m.follow
	}
	b, err := sync(ctx)
	if err != nil {
		return err
	}
	if err := m.serve(b); err != nil || m.options.Follow {
		return err
	}
	return m.publish(ctx, m.CABundle())
}

func (m *Manager) serve(b bundle) error {
	caBundle, _, err := b.authority.encode()
	if err != nil {
		return err
	}
	m.current.Store(&serving{bundle: b, tls: b.serving.tls(), caBundle: caBundle})
	m.once.Do(func() { close(m.ready) })
	return nil
}

func (m *Manager) memory() bundle {
	if s := m.current.Load(); s != nil {
		return s.bundle
	}
	return bundle{}
}
