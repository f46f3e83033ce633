//go:build fleet

package fleet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/testing/devcluster/process"
	"github.com/weir-dev/weir/internal/testing/freeport"
)

// An identity is the directory of a certificate for localhost that signs itself. It is also that of its
// own authority, and that of a client.
type identity string

func newIdentity(name string) identity {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	i := identity(GinkgoT().TempDir())
	for file, block := range map[string]*pem.Block{
		"ca.crt": {Type: "CERTIFICATE", Bytes: certificate}, "tls.crt": {Type: "CERTIFICATE", Bytes: certificate},
		"tls.key": {Type: "PRIVATE KEY", Bytes: encoded},
	} {
		Expect(os.WriteFile(i.file(file), pem.EncodeToMemory(block), 0o600)).To(Succeed())
	}
	return i
}

func (i identity) file(name string) string { return filepath.Join(string(i), name) }

// aggregation returns the arguments by which an API server passes requests on to others, with the name
// of the user.
func (i identity) aggregation() []string {
	return []string{
		"--requestheader-client-ca-file=" + i.file("ca.crt"), "--proxy-client-cert-file=" + i.file("tls.crt"), "--proxy-client-key-file=" + i.file("tls.key"),
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
	}
}

// prometheusService is where the samples have Prometheus.
const prometheusService = "prometheus-operated.monitoring.svc:9090"

// newWay starts an HTTP proxy by which processes of this machine reach the Service of Prometheus, and
// nothing else.
func newWay(prometheus string) (address string) {
	GinkgoHelper()
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: prometheus}) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host != prometheusService {
			http.Error(w, "there is no way to "+r.URL.Host, http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	DeferCleanup(server.Close)
	return server.URL
}

// metrics are the external metrics of a cluster.
type metrics struct {
	*site
	dir        string // of logs
	prometheus string // the proxy to it
}

// externalMetrics has the API server ask a port of this machine for external metrics.
const externalMetrics = `
apiVersion: v1
kind: Service
metadata: {name: external-metrics, namespace: weir-system}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.external.metrics.k8s.io}
spec:
  group: external.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: external-metrics, namespace: weir-system, port: PORT}
`

// start starts a program with the rights of an administrator, and ends it with the spec.
func (m *metrics) start(program string, args ...string) {
	GinkgoHelper()
	server, err := process.Start(process.Spec{
		Path: program, Args: args, Log: filepath.Join(m.dir, "logs", filepath.Base(program)+".log"),
		Env: append(os.Environ(), "KUBECONFIG="+m.cluster.Kubeconfig, "HTTP_PROXY="+m.prometheus,
			"KUBE_CACHE_MUTATION_DETECTOR=false", // KEDA changes objects of its caches
			"POD_NAMESPACE=weir-system", "KEDA_CLUSTER_OBJECT_NAMESPACE=weir-system", "WATCH_NAMESPACE="),
	})
	Expect(err).NotTo(HaveOccurred(), "run the spec with `make test-autoscaling`, which builds it")
	DeferCleanup(server.Kill)
}

// ofAutoscalers returns the path of a file that hack/addons.sh writes.
func ofAutoscalers(name string) string { return filepath.Join(os.Getenv("AUTOSCALERS"), name) }

// serve starts an adapter, which gets a port, and registers it.
func (m *metrics) serve(ctx context.Context, program string, own identity, args ...string) {
	GinkgoHelper()
	address, err := freeport.Address()
	Expect(err).NotTo(HaveOccurred())
	_, port, _ := strings.Cut(address, ":")
	m.start(program, append([]string{
		"--secure-port=" + port, "--bind-address=127.0.0.1", "--tls-cert-file=" + own.file("tls.crt"), "--tls-private-key-file=" + own.file("tls.key"),
		"--lister-kubeconfig=" + m.cluster.Kubeconfig, "--authentication-kubeconfig=" + m.cluster.Kubeconfig, "--authorization-kubeconfig=" + m.cluster.Kubeconfig,
	}, args...)...)
	Expect(m.cluster.Apply(ctx, []byte(strings.ReplaceAll(externalMetrics, "PORT", port)))).To(Succeed())
}

// serveByAdapter starts prometheus-adapter with what its chart makes of the values of the sample.
func (m *metrics) serveByAdapter(ctx context.Context) {
	GinkgoHelper()
	var values struct {
		Prometheus struct {
			URL  string
			Port int
		}
		Rules struct{ External any }
	}
	Expect(yaml.Unmarshal(sample("prometheus-adapter.yaml"), &values)).To(Succeed())
	rules, err := yaml.Marshal(map[string]any{"externalRules": values.Rules.External})
	Expect(err).NotTo(HaveOccurred())
	config := filepath.Join(GinkgoT().TempDir(), "config.yaml")
	Expect(os.WriteFile(config, rules, 0o600)).To(Succeed())
	m.serve(ctx, ofAutoscalers("prometheus-adapter"), newIdentity("adapter"), "--config="+config, "--metrics-relist-interval=1m",
		fmt.Sprintf("--prometheus-url=%s:%d", values.Prometheus.URL, values.Prometheus.Port))
}

// sample reads a file of config/autoscaling.
func sample(name string) []byte {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, "config", "autoscaling", name))
	Expect(err).NotTo(HaveOccurred())
	return text
}
