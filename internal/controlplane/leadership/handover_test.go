package leadership_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/weir-dev/weir/internal/controlplane/leadership"
	"github.com/weir-dev/weir/internal/testing/apiserver"
)

// timing is the controller's own.
var timing = leadership.Timing{Lease: 15 * time.Second, Renew: 10 * time.Second, Retry: time.Second}

// patience is how long nobody may lead. The times that docs/operations.md promises, 3 and 20
// seconds, are logged here, and hold on a machine that is not busy with other tests.
var patience = 4 * timing.Lease

// A replica leads as a controller does: with something that grants, and that takes a
// while to seal its books when it has to stop.
type replica struct {
	lock     *leadership.Lock
	cut      atomic.Bool  // from the API server
	released atomic.Int64 // when the lease was given back, in Unix nanoseconds; 0: it was not
	began    chan time.Time
	sealed   chan time.Time
	stop     context.CancelFunc
	ended    chan error
}

var errCut = errors.New("the network is gone")

// RoundTrip sees when the lease is given back, and fails once the replica is cut off.
func (r *replica) RoundTrip(to http.RoundTripper, q *http.Request) (*http.Response, error) {
	if r.cut.Load() {
		return nil, errCut
	}
	if q.Method == http.MethodPut {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return nil, err
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"holderIdentity":""`)) {
			r.released.Store(time.Now().UnixNano())
		}
	}
	return to.RoundTrip(q)
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(q *http.Request) (*http.Response, error) { return t(q) }

// sealing is how long the books take.
const sealing = 300 * time.Millisecond

// Start grants until ctx is done, and then seals.
func (r *replica) Start(ctx context.Context) error {
	r.began <- time.Now()
	<-ctx.Done()
	<-time.After(sealing)
	r.sealed <- time.Now()
	return nil
}

func start(t *testing.T, config *rest.Config, name string) *replica {
	t.Helper()
	r := &replica{began: make(chan time.Time, 1), sealed: make(chan time.Time, 1), ended: make(chan error, 1)}
	config = rest.CopyConfig(config)
	config.ContentType = "application/json" // so that the replica can read what it sends
	config.Wrap(func(to http.RoundTripper) http.RoundTripper {
		return transport(func(q *http.Request) (*http.Response, error) { return r.RoundTrip(to, q) })
	})
	leases, err := leadership.Leases(config, timing.Renew)
	if err != nil {
		t.Fatal(err)
	}
	r.lock = leadership.New(leadership.Config{Leases: leases, Namespace: namespace, Name: "weir-controller", Identity: name, Hold: timing.Renew})
	options := manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0"}
	leadership.Elect(&options, r.lock, timing)
	m, err := manager.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Add(r); err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	go func() { r.ended <- m.Start(ctx) }()
	t.Cleanup(r.stop)
	return r
}

func (r *replica) awaitLead(t *testing.T) time.Time {
	t.Helper()
	select {
	case at := <-r.began:
		return at
	case <-time.After(patience):
		t.Fatal("nobody leads")
		return time.Time{}
	}
}

// TestHandOver changes the leader on a real API server: in order, many times, and then by
// a crash.
func TestHandOver(t *testing.T) {
	environment := &envtest.Environment{}
	config := apiserver.Start(t, environment)
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	const planned = 8
	leads := start(t, config, "controller-0")
	leads.awaitLead(t)
	for i := range planned {
		next := start(t, config, fmt.Sprint("controller-", i+1))
		<-time.After(time.Second) // it has seen that another leads
		stopped := time.Now()
		leads.stop()
		began := next.awaitLead(t)
		sealed := <-leads.sealed
		released := time.Unix(0, leads.released.Load())
		t.Logf("planned hand-over %d: %s, %s of it to stop", i+1, began.Sub(stopped).Round(time.Millisecond), sealed.Sub(stopped).Round(time.Millisecond))
		if took := began.Sub(stopped); took >= timing.Lease {
			t.Errorf("it took %s: the next waited until the lease ran out", took)
		}
		if leads.released.Load() == 0 || released.Before(sealed) || began.Before(sealed) {
			t.Errorf("sealed at %s, released at %s, and the next led from %s: a grant of both is possible", sealed, released, began)
		}
		if leads.lock.Held() {
			t.Error("who stopped believes to lead")
		}
		if err := <-leads.ended; err != nil {
			t.Errorf("it stopped with %v", err)
		}
		leads = next
	}
	if testing.Short() {
		return // a crash takes a lease
	}

	next := start(t, config, "controller-crash")
	<-time.After(time.Second)
	crashed := time.Now()
	leads.cut.Store(true)
	began := next.awaitLead(t)
	t.Logf("hand-over after a crash: %s", began.Sub(crashed).Round(time.Millisecond))
	if leads.lock.Held() {
		t.Error("two processes believe to lead")
	}
	select {
	case sealed := <-leads.sealed:
		if began.Before(sealed) {
			t.Errorf("the old leader went on for %s", sealed.Sub(began))
		}
	case <-time.After(patience):
		t.Error("who was cut off still grants")
	}
	if leads.released.Load() != 0 {
		t.Error("a lease that was lost was given back")
	}
	next.stop()
	<-next.ended
	<-leads.ended
}
