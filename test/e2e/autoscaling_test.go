//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	fewest = 2
	most   = 4
)

// startAdapter runs prometheus-adapter with what its chart makes of the values of the sample.
func startAdapter(ctx context.Context) {
	GinkgoHelper()
	var values struct {
		Prometheus struct {
			URL  string
			Port int
		}
		Rules struct{ External any }
	}
	Expect(yaml.Unmarshal([]byte(repositoryFile("config", "autoscaling", "prometheus-adapter.yaml")), &values)).To(Succeed())
	rules, err := yaml.Marshal(map[string]any{"externalRules": values.Rules.External})
	Expect(err).NotTo(HaveOccurred())
	pack{"/usr/bin/prometheus-adapter": built("prometheus-adapter")}.load(ctx, "weir-test-prometheus-adapter:local", "/usr/bin/prometheus-adapter")
	url := fmt.Sprintf("%s:%d", values.Prometheus.URL, values.Prometheus.Port)
	startServer(ctx, "prometheus-adapter", strings.ReplaceAll(manifest("prometheus-adapter.yaml"), "URL", url), map[string]string{"config.yaml": string(rules)})
}

// autoscale applies the sample's HorizontalPodAutoscaler with one of its metrics, and with a target and
// numbers of pods for this suite.
func (s *shop) autoscale(ctx context.Context, metric, target string) *autoscalingv2.HorizontalPodAutoscaler {
	GinkgoHelper()
	var hpa autoscalingv2.HorizontalPodAutoscaler
	Expect(yaml.UnmarshalStrict([]byte(repositoryFile("config", "autoscaling", "hpa.yaml")), &hpa)).To(Succeed())
	hpa.Namespace = s.namespace
	hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas = new(int32(fewest)), most
	hpa.Spec.Metrics = slices.DeleteFunc(hpa.Spec.Metrics, func(m autoscalingv2.MetricSpec) bool { return m.External.Metric.Name != metric })
	Expect(hpa.Spec.Metrics).To(HaveLen(1))
	if to := &hpa.Spec.Metrics[0].External.Target; to.Type == autoscalingv2.ValueMetricType {
		to.Value = new(resource.MustParse(target))
	} else {
		to.AverageValue = new(resource.MustParse(target))
	}
	Expect(kube.Create(ctx, &hpa)).To(Succeed())
	return &hpa
}

// replicas returns how many pods the Deployment is to have.
func (s *shop) replicas(ctx context.Context, g Gomega) int32 {
	d := &appsv1.Deployment{}
	g.Expect(kube.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "checkout"}, d)).To(Succeed())
	return *d.Spec.Replicas
}

// awaitMost returns when the autoscaler has added all the pods that it may. Meanwhile a look, which
// lasts some seconds, is taken again and again.
func (s *shop) awaitMost(ctx context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler, look func()) {
	GinkgoHelper()
	began := time.Now()
	for s.replicas(ctx, Default) < most {
		Expect(time.Since(began)).To(BeNumerically("<", 4*time.Minute), func() string { return fmt.Sprintf("%+v", get(ctx, Default, hpa).Status) })
		look()
	}
	Expect(get(ctx, Default, hpa).Status.CurrentMetrics).To(ConsistOf(HaveField("External.Metric.Name", hpa.Spec.Metrics[0].External.Metric.Name)))
	fmt.Fprintf(GinkgoWriter, "%d pods became %d after %s by %+v\n", fewest, most, time.Since(began).Round(time.Second), hpa.Status.CurrentMetrics[0].External.Current)
	s.awaitReady(ctx, "app=checkout", most)
	s.kubectl(ctx, "-n", s.namespace, "delete", "hpa", hpa.Name)
}

var _ = Describe("A HorizontalPodAutoscaler in the cluster", addons, Serial, Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		startPrometheus(ctx)
		startAdapter(ctx)
	}, NodeTimeout(4*time.Minute))

	It("adds pods by what a limit admits, and the limit is exact while it does", func(ctx SpecContext) {
		s := openShop(ctx)
		Expect(kube.Create(ctx, s.service("checkout", "checkout", 80, 8080))).To(Succeed())
		s.limitTo(ctx, limit, deny)
		s.deploy(ctx, fewest)
		s.awaitProgrammed(ctx, fewest)
		s.startLoad(ctx, overload)
		start := nextWindow().Add(window)
		s.awaitFull(ctx, start, 1)

		next := nextWindow()
		hpa := s.autoscale(ctx, "weir_admitted", "11") // units a second and pod, where the limit admits 40
		s.awaitMost(ctx, hpa, func() {
			Expect(s.admitted(ctx, next)).To(BeNumerically("<=", limit))
			next = next.Add(window)
		})
		s.awaitProgrammed(ctx, most)
		s.awaitFull(ctx, next, 2)
		s.nobodyMissed(ctx, start)
		s.awaitExact(ctx, next)
	}, SpecTimeout(7*time.Minute))

	It("adds pods while a pool refuses requests, and what is in flight stays within the pool", func(ctx SpecContext) {
		s := openShop(ctx)
		Expect(kube.Create(ctx, s.service("checkout", "checkout", 80, 8080))).To(Succeed())
		s.deploy(ctx, fewest, s.startBackend(ctx))
		s.bound(ctx, threads)
		s.awaitBound(ctx, fewest)
		s.startLoad(ctx, flood)
		s.serves(ctx, "with the fewest pods", threads, enough)

		hpa := s.autoscale(ctx, "weir_pool_load", "600m") // what the few slots of each of the most pods are used by still
		s.awaitMost(ctx, hpa, func() { s.flows(ctx, "while pods are added", threads, 5*time.Second) })
		s.awaitBound(ctx, most)
		s.serves(ctx, "with the most pods", threads, enough)
	}, SpecTimeout(7*time.Minute))
})
