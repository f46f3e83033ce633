package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/certs"
	"github.com/weir-dev/weir/internal/controlplane/jwks"
	"github.com/weir-dev/weir/internal/controlplane/leadership"
	"github.com/weir-dev/weir/internal/controlplane/objectcache"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/version"
)

// Names of the objects that the controller keeps in its namespace.
const (
	leaseName      = "weir-controller"
	secretName     = "weir-certificates"
	fleetService   = "weir-fleet"
	webhookService = "weir-webhook"
)

// platform is what the parts of the process are built on.
type platform struct {
	options      *options
	config       *rest.Config
	manager      manager.Manager
	live         client.Client // reads from the API server, not from the cache
	certificates *certs.Manager
	lock         *leadership.Lock // nil without leader election
	snapshots    resolve.ByLabels
	secrets      *resolve.Secrets
	keys         *resolve.Keys
	addresses    *addresses // of stores, hubs and issuers of tokens
	close        func()     // ends what outlives the lock of leader election

	clientAuthorities *x509.CertPool // of the webhooks' callers; nil: everybody is answered
}

func newPlatform(ctx context.Context, o *options) (*platform, error) {
	p := &platform{options: o, close: func() {}}
	var err error
	// An empty path means the service account of the pod.
	if p.config, err = clientcmd.BuildConfigFromFlags("", o.kubeconfig); err != nil {
		return nil, fmt.Errorf("configuration of the API client: %w", err)
	}
	p.config.QPS, p.config.Burst = float32(o.apiRequests), 2*o.apiRequests

	if p.addresses, err = newAddresses(o, p.config); err != nil {
		return nil, err
	}
	if o.webhookClientCA != "" {
		if p.clientAuthorities, err = readAuthorities(o.webhookClientCA); err != nil {
			return nil, err
		}
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	if p.live, err = client.New(p.config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	if err := p.nameCluster(ctx); err != nil {
		return nil, err
	}
	p.certificates = p.newCertificates()
	if o.leaderElect && o.runs(coordinatorComponent) {
		if p.lock, err = p.newLock(); err != nil {
			return nil, err
		}
	}
	if p.manager, err = p.newManager(scheme); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	p.secrets = resolve.NewSecrets(p.live)
	sets := jwks.NewCache(clock.RealClock{}, p.addresses.keySets().Fetch)
	p.keys = p.keysWith(sets)
	p.snapshots = p.byLabels()
	return p, errors.Join(p.manager.Add(p.certificates), p.manager.Add(sets), metrics.Registry.Register(p.certificates), metrics.Registry.Register(version.Metric()),
		metrics.Registry.Register(requestsMetric(o.apiRequests)))
}

// keysWith returns what finds keys of tokens: in Secrets, and in sets at URLs.
func (p *platform) keysWith(sets *jwks.Cache) *resolve.Keys {
	return &resolve.Keys{Secrets: p.secrets, URL: sets.Keys}
}

func (p *platform) byLabels() resolve.ByLabels {
	return resolve.ByLabels{Cluster: p.options.clusterName, IDs: p.options.budgetIDs, Cache: p.manager.GetCache()}
}

// requestsMetric says how many requests a second may be sent to the API server.
func requestsMetric(most int) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_api_requests_per_second_limit",
		Help: "Requests that each client of this controller may send to the API server in a second, as --api-requests says; rest_client_requests_total counts them.",
	})
	g.Set(float64(most))
	return g
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return scheme, v1alpha1.AddToScheme(scheme)
}

// nameCluster defaults the cluster's name: the UID of kube-system is as old as
// the cluster and no other cluster has it.
func (p *platform) nameCluster(ctx context.Context) error {
	if p.options.clusterName != "" {
		return nil
	}
	var system corev1.Namespace
	if err := p.live.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, &system); err != nil {
		return fmt.Errorf("naming the cluster (set --cluster-name to do without): %w", err)
	}
	p.options.clusterName = string(system.UID)
	return nil
}

func (p *platform) newCertificates() *certs.Manager {
	o := p.options
	return certs.New(p.live, certs.Options{
		Follow:             !o.runs(coordinatorComponent),
		Secret:             types.NamespacedName{Namespace: o.namespace, Name: secretName},
		Names:              append([]string{o.service(webhookService), o.service(fleetService)}, o.certificateSANs...),
		MutatingWebhooks:   []string{o.mutatingWebhook},
		ValidatingWebhooks: []string{o.validatingWebhook},
	})
}

// service is the name under which pods reach a Service of the controller.
func (o *options) service(name string) string { return name + "." + o.namespace + ".svc" }

func (p *platform) newLock() (*leadership.Lock, error) {
	config, err := p.lockConfig()
	if err != nil {
		return nil, err
	}
	return leadership.New(config), nil
}

func (p *platform) lockConfig() (leadership.Config, error) {
	host, err := os.Hostname()
	if err != nil {
		return leadership.Config{}, fmt.Errorf("name of this host: %w", err)
	}
	identity := p.options.identity(host, string(uuid.NewUUID()))
	leases, err := leadership.Leases(p.config, p.options.renewDeadline)
	return leadership.Config{
		Leases: leases, Namespace: p.options.namespace, Name: leaseName,
		Identity: identity, Hold: p.options.renewDeadline,
	}, err
}

func (p *platform) newManager(scheme *runtime.Scheme) (manager.Manager, error) {
	return ctrl.NewManager(p.config, p.managerOptions(scheme))
}

func (p *platform) managerOptions(scheme *runtime.Scheme) ctrl.Options {
	o := p.options
	forever := time.Duration(-1)
	options := ctrl.Options{
		Scheme:                 scheme,
		Cache:                  objectcache.Options(),
		Metrics:                metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress: o.healthAddress,
		PprofBindAddress:       o.profileAddress,
		WebhookServer:          webhook.NewServer(webhook.Options{Host: o.webhookHost, Port: o.webhookPort, TLSOpts: []func(*tls.Config){p.secure}}),

		// The coordinator seals its ledger before it returns, and nothing cuts that short.
		GracefulShutdownTimeout: &forever,
	}
	if p.lock != nil {
		leadership.Elect(&options, p.lock, leadership.Timing{Lease: o.leaseDuration, Renew: o.renewDeadline, Retry: o.retryPeriod})
	}
	return options
}

// secure has a server present the certificate that is in force. Callers without a
// certificate get through to an answer, which readiness checks need too; a wrong one ends
// the handshake.
func (p *platform) secure(c *tls.Config) {
	c.MinVersion = tls.VersionTLS13
	c.GetCertificate = p.certificates.GetCertificate
	if p.clientAuthorities != nil {
		c.ClientCAs, c.ClientAuth = p.clientAuthorities, tls.VerifyClientCertIfGiven
	}
}
