package main

import (
	"io"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/internal/controlplane/jwks"
	"github.com/weir-dev/weir/internal/controlplane/leadership"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/controlplane/storeprobe"
	budgetcoordinator "github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
)

// idle is a manager that runs nothing.
type idle struct {
	manager.Manager
	client client.Client
}

func (i idle) GetClient() client.Client { return i.client }
func (idle) GetCache() cache.Cache      { return struct{ cache.Cache }{} }
func (idle) GetEventRecorder(string) recorder.EventRecorder {
	return struct{ recorder.EventRecorder }{}
}
func (idle) Elected() <-chan struct{} { return make(chan struct{}) }

// withAll returns a platform with every option chosen and nothing running.
func withAll(t *testing.T) *platform {
	t.Helper()
	o, err := parse([]string{
		"--cluster-name=eu-west", "--policy-metrics=Namespace", "--sidecar-image=weir-sidecar:test", "--sidecar-image-pull-policy=Always",
		"--sidecar-image-pull-secrets=registry", "--sidecar-otlp-endpoint=traces:4317", "--webhook-host=127.0.0.1", "--profile-bind-address=127.0.0.1:6060",
	}, environment(map[string]string{"POD_NAME": "weir-controller-0"}), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientBuilder().WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "uid"}}).Build()
	p := &platform{
		options: &o, config: &rest.Config{Host: "http://127.0.0.1:1"}, manager: idle{client: kube}, live: kube, lock: &leadership.Lock{},
		secrets: resolve.NewSecrets(kube),
	}
	p.keys = p.keysWith(jwks.NewCache(nil, nil))
	p.snapshots, p.certificates = p.byLabels(), p.newCertificates()
	return p
}

// requireSet fails the test for each field of a struct that has no value, but these.
func requireSet(t *testing.T, of any, but ...string) {
	t.Helper()
	v := reflect.Indirect(reflect.ValueOf(of))
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && v.Field(i).IsZero() && !slices.Contains(but, f.Name) {
			t.Errorf("%s of %s is not set", f.Name, v.Type())
		}
	}
}

func TestEveryPartHasWhatItWorksWith(t *testing.T) {
	p, stores := withAll(t), storeprobe.New(backend.Opener{}.Open)
	f := &federation{journal: hub.NewJournal(nil), audits: hub.NewAudits(), births: hub.NewBirths(nil), coordinator: budgetcoordinator.New(budgetcoordinator.Options{}), control: new(addresses).control, plain: new(addresses).plain}
	f.budgets = newBudgets(p.options.clusterName, p.options.budgetIDs, p.live, p.live, p.secrets, f.births)

	policies, pools, budgets := p.reconcilers(coordinator.New(coordinator.Config{}), stores)
	requireSet(t, policies)
	requireSet(t, pools)
	requireSet(t, budgets)
	requireSet(t, p.objects(func() bool { return true }))

	fleet, err := p.coordinatorConfig(f, stores)
	if err != nil {
		t.Fatal(err)
	}
	requireSet(t, fleet)
	requireSet(t, fleet.Resolver)
	requireSet(t, p.snapshots)
	requireSet(t, p.keys)

	requireSet(t, f.regionConfig(), "Dial", "Open", "New") // the real ones
	requireSet(t, p.credentialsConfig(f), "Interval", "Clock")
	requireSet(t, p.hubConfig(f, hub.NewCredentials(p.credentialsConfig(f))))
	if b := f.budgets; b.cluster == "" || b.cache == nil || b.writer == nil || b.secrets == nil || b.births == nil {
		t.Errorf("budgets have %+v", b)
	}

	injector := p.injector(34)
	requireSet(t, injector)
	requireSet(t, injector.Config, "CABundle", "Snapshot", "ProbeToken") // which are of each pod

	lock, err := p.lockConfig()
	if err != nil {
		t.Fatal(err)
	}
	requireSet(t, lock, "Boot", "Wall")
}

func TestTheManagerIsAsTheOptionsSay(t *testing.T) {
	p := withAll(t)
	got := p.managerOptions(nil)
	if got.Metrics.BindAddress != ":8080" || got.HealthProbeBindAddress != ":8081" || got.PprofBindAddress != "127.0.0.1:6060" {
		t.Errorf("it listens on %s, %s and %s", got.Metrics.BindAddress, got.HealthProbeBindAddress, got.PprofBindAddress)
	}
	if hooks, is := got.WebhookServer.(*webhook.DefaultServer); !is || hooks.Options.Host != "127.0.0.1" || hooks.Options.Port != 9443 {
		t.Errorf("the webhooks are %+v", got.WebhookServer)
	}
	if *got.LeaseDuration != 15*time.Second || *got.RenewDeadline != 10*time.Second || *got.RetryPeriod != time.Second {
		t.Errorf("a lease of %v is renewed within %v, every %v", *got.LeaseDuration, *got.RenewDeadline, *got.RetryPeriod)
	}
	p.lock = nil
	if alone := p.managerOptions(nil); alone.LeaderElection || alone.GracefulShutdownTimeout == nil || *alone.GracefulShutdownTimeout >= 0 {
		t.Errorf("alone it has %v to stop, elected: %t", alone.GracefulShutdownTimeout, alone.LeaderElection)
	}
}

func TestAClusterWithoutANameHasTheUIDOfItsSystem(t *testing.T) {
	p := withAll(t)
	p.options.clusterName = ""
	if err := p.nameCluster(t.Context()); err != nil || p.options.clusterName != "uid" {
		t.Errorf("it is called %q, error %v", p.options.clusterName, err)
	}
}
