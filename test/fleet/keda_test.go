//go:build fleet

package fleet

import (
	"context"
	"fmt"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-dev/weir/internal/testing/freeport"
)

// serveByKEDA starts the two programs of KEDA: the operator, which makes a HorizontalPodAutoscaler
// of a ScaledObject and asks Prometheus, and the adapter, which serves what the operator got.
func (m *metrics) serveByKEDA(ctx context.Context) {
	GinkgoHelper()
	definitions, err := os.ReadFile(ofAutoscalers("keda-crds.yaml"))
	Expect(err).NotTo(HaveOccurred(), "run the spec with `make test-autoscaling`, which writes it")
	Expect(m.cluster.Apply(ctx, definitions)).To(Succeed())
	port, err := freeport.Port()
	Expect(err).NotTo(HaveOccurred())
	own := newIdentity("keda") // each of the two shows it to the other
	m.start(ofAutoscalers("keda-operator"), fmt.Sprintf("--metrics-service-bind-address=localhost:%d", port), "--cert-dir="+string(own),
		"--metrics-bind-address=0", "--health-probe-bind-address=0")
	m.serve(ctx, ofAutoscalers("keda-adapter"), own, fmt.Sprintf("--metrics-service-address=localhost:%d", port), "--cert-dir="+string(own), "--port=0")
}
