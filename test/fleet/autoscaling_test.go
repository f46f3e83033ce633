//go:build fleet

package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/internal/testing/devcluster"
	"github.com/weir-dev/weir/internal/testing/devcluster/backend"
	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
)

// autoscaling labels what `make test-autoscaling` alone runs.
var autoscaling = Label("autoscaling")

// The shop whose pods are scaled. Its pool has a slot for each of the most pods, and refuses
// what its backend cannot bear.
const (
	fewestPods  = 4 // of config/autoscaling
	slotsInAll  = 24
	slowService = 200 * time.Millisecond
	crowd       = 180 // requests a second: half more than slotsInAll serve
	scaled      = `
apiVersion: weir.dev/v1alpha1
kind: ConcurrencyPool
metadata: {name: checkout, namespace: shop}
spec:
  podSelector: {matchLabels: {app: checkout}}
  limit: {max: 24}
  algorithm: {type: Fixed}
---
apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: checkout, namespace: shop}
spec:
  podSelector: {matchLabels: {app: checkout}}
  limits:
  - {name: all, rates: [{limit: 100000, window: 5s}]}
`
)

// openScaledShop starts a cluster with the controller of HorizontalPodAutoscalers, and in it a shop
// of the samples' names whose pool refuses requests. Its files are below the directory name.
func openScaledShop(ctx context.Context, name string) (*shop, *metrics) {
	GinkgoHelper()
	dir := filepath.Join(workDir, name)
	front := newIdentity("front-proxy")
	s := openShopIn(ctx, openSiteOf(ctx, "", devcluster.Config{
		Root: root, Assets: os.Getenv(assets), Dir: dir,
		Controller: binary("controller"), ControllerArgs: devcluster.QuickLeaderElection,
		ServerArgs:  front.aggregation(),
		ManagerArgs: []string{"--controllers=horizontal-pod-autoscaler-controller", "--horizontal-pod-autoscaler-sync-period=2s"},
		Program:     program, Log: slog.New(slog.NewTextHandler(GinkgoWriter, nil)),
	}), metav1.ObjectMeta{Name: "shop"})
	server, err := backend.Start(slotsInAll, slowService)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Close)
	s.backend = server.Address()
	Expect(s.cluster.Apply(ctx, []byte(scaled))).To(Succeed())
	s.deploy(ctx, "checkout", fewestPods, nil)
	p := startPrometheus(ctx, s)
	s.startLoad(crowd)
	// An adapter looks for new series once a minute.
	for _, query := range autoscaled(s.namespace) {
		Eventually(func() []series { return p.query(ctx, Default, query) }, longest, time.Second).Should(HaveLen(1), query)
	}
	return s, &metrics{site: s.site, dir: dir, prometheus: newWay(p.address)}
}

// pods returns how many pods the Deployment is to have.
func (s *shop) pods(ctx context.Context, g Gomega) int32 {
	d := &appsv1.Deployment{}
	g.Expect(s.kube.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "checkout"}, d)).To(Succeed())
	return *d.Spec.Replicas
}

// scales proves that an autoscaler adds pods while the pool refuses requests, and keeps the pods that
// it has while no controller leads.
func (s *shop) scales(ctx context.Context, autoscaler string) {
	GinkgoHelper()
	hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: autoscaler}}
	active := func(g Gomega) corev1.ConditionStatus {
		g.Expect(s.kube.Get(ctx, client.ObjectKeyFromObject(hpa), hpa)).To(Succeed())
		for _, c := range hpa.Status.Conditions {
			if c.Type == autoscalingv2.ScalingActive {
				return c.Status
			}
		}
		return corev1.ConditionUnknown
	}
	began := time.Now()
	Eventually(active, longest, time.Second).Should(Equal(corev1.ConditionTrue), func() string { return fmt.Sprintf("%+v", hpa.Status.Conditions) })
	Eventually(func(g Gomega) int32 { return s.pods(ctx, g) }, 2*longest, time.Second).Should(BeNumerically(">", fewestPods))
	grown := s.pods(ctx, Default)
	refused := s.load.Sum(began, time.Now(), func(o *traffic.Outcomes) *traffic.Series { return &o.Refused })
	Expect(refused).To(BeNumerically(">", 0))
	Expect(active(Default)).To(Equal(corev1.ConditionTrue))
	fmt.Fprintf(GinkgoWriter, "%d pods became %d after %s, with %d requests refused\n", fewestPods, grown, time.Since(began).Round(time.Second), refused)
	for i, current := range hpa.Status.CurrentMetrics {
		Expect(current.External).NotTo(BeNil(), "metric %d of %+v", i, hpa.Status.CurrentMetrics)
		fmt.Fprintf(GinkgoWriter, "%s is %+v\n", current.External.Metric.Name, current.External.Current)
	}
	Expect(hpa.Status.CurrentMetrics).To(HaveLen(2))
	Eventually(func() int { return len(s.targets(ctx)) }, longest, time.Second).Should(BeNumerically(">=", grown))

	s.cluster.Controller.Kill()
	Eventually(active, longest, time.Second).Should(Equal(corev1.ConditionFalse))
	kept := s.pods(ctx, Default)
	Consistently(func(g Gomega) int32 { return s.pods(ctx, g) }, 5*time.Second, time.Second).Should(Equal(kept))
	Expect(s.cluster.Controller.Start(ctx)).To(Succeed())
	Eventually(active, longest, time.Second).Should(Equal(corev1.ConditionTrue))
}

var _ = Describe("An autoscaler", autoscaling, func() {
	It("adds pods by the metrics of prometheus-adapter while a pool refuses requests", func(ctx SpecContext) {
		s, m := openScaledShop(ctx, "prometheus-adapter")
		m.serveByAdapter(ctx)
		Expect(s.cluster.Apply(ctx, sample("hpa.yaml"))).To(Succeed())
		s.scales(ctx, "checkout")
	}, SpecTimeout(6*time.Minute))

	It("adds pods by KEDA, which asks Prometheus itself, while a pool refuses requests", func(ctx SpecContext) {
		s, m := openScaledShop(ctx, "keda")
		m.serveByKEDA(ctx)
		Expect(s.cluster.Apply(ctx, sample("keda.yaml"))).To(Succeed())
		s.scales(ctx, "keda-hpa-checkout") // the name that KEDA gives
	}, SpecTimeout(6*time.Minute))
})
