package webhook

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/apiserver"
)

// TestOutages takes the webhooks away in every way there is. Pods that did not opt in
// are created as if there were none: with no connection made for them, or the first would
// fail under failurePolicy Fail. Pods that did
// are refused with a message that says what to do or, where somebody chose Ignore,
// start without a sidecar.
func TestOutages(t *testing.T) {
	o := newOutage(t)
	for _, tc := range []struct {
		name       string
		bystanders int            // pods that did not opt in
		serve      func(net.Conn) // nil: no server listens
		refusal    string         // of a pod that opted in: what the API server says of us
	}{
		{"refuses connections", 1000, nil, "connection refused"},
		{"hangs", 100, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "deadline exceeded"},
		{"answers with 500", 100, o.answer(http.StatusInternalServerError, "out of order"), "out of order"},
		{"answers with garbage", 100, o.answer(http.StatusOK, "<html>it works</html>"), "json parse error"},
		{"answers for another request", 100, o.answer(http.StatusOK,
			`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"another","allowed":true}}`), "uid"},
		{"has a certificate of another authority", 100, o.impostor(t), "certificate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o.listen(t, tc.serve)
			o.create(t, tc.name, tc.bystanders)
			if tc.serve != nil && o.connections.Load() != 0 {
				t.Errorf("%d connections for %d pods that did not opt in", o.connections.Load(), tc.bystanders)
			}

			o.policy(t, admissionv1.Fail)
			err := o.Create(t.Context(), o.pod("shop"), client.DryRunAll)
			if err == nil {
				t.Fatal("a pod that asked for limits starts without them")
			}
			for _, want := range []string{"namespace.inject.weir.dev", tc.refusal} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the refusal %q does not say %q", err, want)
				}
			}
			if tc.serve != nil && o.connections.Load() == 0 {
				t.Error("nobody called for a pod that opted in, so that nobody calls for others proves nothing")
			}

			o.policy(t, admissionv1.Ignore)
			pod := o.pod("shop")
			if err := o.Create(t.Context(), pod, client.DryRunAll); err != nil {
				t.Errorf("with failurePolicy Ignore the pod is refused: %v", err)
			}
			if len(pod.Spec.InitContainers) != 0 {
				t.Error("somebody injected it")
			}
		})
	}
}

// An outage is an API server whose webhooks are ours to break.
type outage struct {
	*apiServer
	address     string
	certificate tls.Certificate // that the webhook configurations trust
	connections atomic.Int64
	names       atomic.Int64
}

func newOutage(t *testing.T) *outage {
	t.Helper()
	root := filepath.Join("..", "..", "..", "config")
	environment := apiserver.WithDefinitions(filepath.Join(root, "crd", "bases"))
	environment.WebhookInstallOptions.Paths = []string{filepath.Join(root, "webhook")}
	config := apiserver.Start(t, environment)
	config.QPS = -1 // as fast as it can
	o := &outage{apiServer: &apiServer{}}
	o.Client = o.connect(t, config)
	where := environment.WebhookInstallOptions
	o.address = net.JoinHostPort(where.LocalServingHost, fmt.Sprint(where.LocalServingPort))
	var err error
	o.certificate, err = tls.LoadX509KeyPair(filepath.Join(where.LocalServingCertDir, "tls.crt"), filepath.Join(where.LocalServingCertDir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	for name, labels := range map[string]map[string]string{"shop": {v1alpha1.InjectionLabel: v1alpha1.Enabled}, "plain": nil} {
		o.mustCreate(t, namespaceNamed(name, labels), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}})
	}
	return o
}

// pod is one that is not created yet.
func (o *outage) pod(namespace string) *corev1.Pod {
	pod := podNamed(namespace, "", "")
	pod.Name = fmt.Sprint("pod-", o.names.Add(1))
	return pod
}

// create creates bystanders. Half of them opt out where others are injected.
func (o *outage) create(t *testing.T, when string, bystanders int) {
	t.Helper()
	o.policy(t, admissionv1.Fail)
	o.connections.Store(0)
	start := time.Now()
	var failed atomic.Int64
	var creating sync.WaitGroup
	const workers = 8
	for worker := range workers {
		creating.Go(func() {
			for i := worker; i < bystanders; i += workers {
				pod := o.pod("plain")
				if i%2 == 0 {
					pod = o.pod("shop")
					pod.Annotations = map[string]string{v1alpha1.InjectKey: v1alpha1.Disabled}
				}
				if err := o.Create(t.Context(), pod); err != nil && failed.Add(1) == 1 {
					t.Errorf("%s: %v", when, err)
				}
			}
		})
	}
	creating.Wait()
	t.Logf("%s: %d of %d pods created in %s, %d connections",
		when, int64(bystanders)-failed.Load(), bystanders, time.Since(start).Round(time.Millisecond), o.connections.Load())
}

// policy sets what the API server does with pods that the webhooks should have seen,
// and returns once it does so.
func (o *outage) policy(t *testing.T, want admissionv1.FailurePolicyType) {
	t.Helper()
	var injector admissionv1.MutatingWebhookConfiguration
	if err := o.Get(t.Context(), types.NamespacedName{Name: "weir-injector"}, &injector); err != nil {
		t.Fatal(err)
	}
	if *injector.Webhooks[0].FailurePolicy == want {
		return
	}
	for i := range injector.Webhooks {
		injector.Webhooks[i].FailurePolicy = &want
		injector.Webhooks[i].TimeoutSeconds = new(int32(1)) // so that the test is short
	}
	if err := o.Update(t.Context(), &injector); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		err := o.Create(ctx, o.pod("shop"), client.DryRunAll)
		if (err == nil) == (want == admissionv1.Ignore) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the API server does not take failurePolicy %s over", want)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// listen has connections counted and served until the test ends.
func (o *outage) listen(t *testing.T, serve func(net.Conn)) {
	t.Helper()
	if serve == nil {
		return
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", o.address)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			o.connections.Add(1)
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			serving.Go(func() { serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, conn := range slices.Clone(open) {
			_ = conn.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
}

// answer serves one HTTP answer to every request, whatever it asks.
func (o *outage) answer(status int, body string) func(net.Conn) {
	return o.serveHTTP(func() tls.Certificate { return o.certificate }, status, body)
}

// impostor serves with a certificate that no client is configured to trust.
func (o *outage) impostor(t *testing.T) func(net.Conn) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	own := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return o.serveHTTP(func() tls.Certificate { return own }, http.StatusOK, "{}")
}

func (o *outage) serveHTTP(certificate func() tls.Certificate, status int, body string) func(net.Conn) {
	return func(conn net.Conn) {
		once := &singleListener{conn: tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate()}, MinVersion: tls.VersionTLS12})}
		server := &http.Server{
			ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Connection", "close")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			}),
		}
		_ = server.Serve(once)
	}
}

// A singleListener accepts one connection.
type singleListener struct {
	conn net.Conn
	used bool
}

func (s *singleListener) Accept() (net.Conn, error) {
	if s.used {
		return nil, net.ErrClosed
	}
	s.used = true
	return s.conn, nil
}

func (s *singleListener) Close() error   { return nil }
func (s *singleListener) Addr() net.Addr { return s.conn.LocalAddr() }
