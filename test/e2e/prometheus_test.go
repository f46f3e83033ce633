//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// prometheusService is where the samples of config/autoscaling have Prometheus.
const prometheusService = "prometheus-operated"

// startPrometheus runs a Prometheus in a pod, with the PodMonitors and the rules of
// config/monitoring.
func startPrometheus(ctx context.Context) {
	GinkgoHelper()
	p := pack{"/usr/bin/prometheus": built("prometheus-kubernetes")}
	p.load(ctx, "weir-test-prometheus:local", "/usr/bin/prometheus")
	config, err := yaml.Marshal(map[string]any{
		"global":         map[string]string{"evaluation_interval": "5s"},
		"rule_files":     []string{"/etc/prometheus/rules.yaml"},
		"scrape_configs": scrapes(repositoryFile("config", "monitoring", "podmonitors.yaml")),
	})
	Expect(err).NotTo(HaveOccurred())
	_, rules := alertRules()
	startServer(ctx, "prometheus", manifest("prometheus.yaml"), map[string]string{"prometheus.yaml": string(config), "rules.yaml": rules})
}

// getPrometheus reads an answer of its API.
func getPrometheus(ctx context.Context, g Gomega, path string, parameters map[string]string, into any) {
	body, err := clientset.CoreV1().Services(monitoring).ProxyGet("http", prometheusService, "web", "api/v1/"+path, parameters).DoRaw(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(json.Unmarshal(body, &struct{ Data any }{into})).To(Succeed())
}

// series returns the labels of the series that a query has now.
func series(ctx context.Context, g Gomega, query string) (labels []map[string]string) {
	var answer struct {
		Result []struct{ Metric map[string]string }
	}
	getPrometheus(ctx, g, "query", map[string]string{"query": query}, &answer)
	for _, s := range answer.Result {
		labels = append(labels, s.Metric)
	}
	return labels
}

// podsIn returns the namespace and name of each pod that a query has a series of.
func podsIn(ctx context.Context, g Gomega, query string) (names []string) {
	for _, s := range series(ctx, g, query) {
		names = append(names, s["namespace"]+"/"+s["pod"])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// firing returns the names of the alerts that fire, or wait to.
func firing(ctx context.Context, g Gomega, state string) (names []string) {
	for _, s := range series(ctx, g, fmt.Sprintf("ALERTS{alertstate=%q}", state)) {
		names = append(names, s["alertname"])
	}
	return names
}

var _ = Describe("A Prometheus in the cluster", addons, Serial, Ordered, func() {
	var s *shop

	BeforeAll(func(ctx SpecContext) {
		enforceNetworkPolicies(ctx)
		startPrometheus(ctx)
		here.admitByTheChart(ctx)
		s = openShop(ctx, byPort)
		s.applyExample(ctx, "injected-pods.example.yaml")
		Expect(kube.Create(ctx, s.service("checkout", "checkout", 80, "http"))).To(Succeed())
		s.limitTo(ctx, limit, deny)
		s.deploy(ctx, 3)
		s.awaitProgrammed(ctx, 3)
		s.startLoad(ctx, overload)
	}, NodeTimeout(5*time.Minute))

	It("finds every controller and sidecar by the PodMonitors, through NetworkPolicies that admit it", func(ctx SpecContext) {
		components := namesOf(ctx, system, "app.kubernetes.io/component in (controller,webhook)")
		controllers, sidecars := namesOf(ctx, system, "app.kubernetes.io/component=controller"), namesOf(ctx, s.namespace, "app=checkout")
		Eventually(func(g Gomega) {
			g.Expect(podsIn(ctx, g, `up{job="weir-system/weir-controller"} == 1`)).To(ConsistOf(components))
			g.Expect(podsIn(ctx, g, fmt.Sprintf(`up{job="weir-system/weir-sidecars",namespace=%q} == 1`, s.namespace))).To(ConsistOf(sidecars))
			g.Expect(podsIn(ctx, g, `weir_leader`)).To(ConsistOf(controllers))
			g.Expect(series(ctx, g, `sum(weir_leader) == 1`)).To(HaveLen(1))
			for _, decision := range []string{"admitted", "refused"} {
				g.Expect(podsIn(ctx, g, fmt.Sprintf(`weir_requests_total{namespace=%q,policy="checkout",limit="all",decision=%q} > 0`, s.namespace, decision))).
					To(ConsistOf(sidecars))
			}
			g.Expect(series(ctx, g, fmt.Sprintf(`weir_overshoot{namespace=%q,policy="checkout"} == 0`, s.namespace))).To(HaveLen(1))
		}, 90*time.Second, time.Second).Should(Succeed())
		start := nextWindow()
		s.awaitFull(ctx, start, 2)
		s.nobodyMissed(ctx, start)
	}, SpecTimeout(3*time.Minute))

	It("loads every alert, and the one fires that should", func(ctx SpecContext) {
		groups, _ := alertRules()
		var want, got []string
		for _, group := range groups {
			for _, rule := range group.Rules {
				want = append(want, rule.Alert+" ok")
			}
		}
		var loaded struct {
			Groups []struct {
				Rules []struct{ Name, Health string }
			}
		}
		Eventually(func(g Gomega) {
			getPrometheus(ctx, g, "rules", nil, &loaded)
			got = nil
			for _, group := range loaded.Groups {
				for _, rule := range group.Rules {
					got = append(got, rule.Name+" "+rule.Health)
				}
			}
			g.Expect(got).To(ConsistOf(want))
		}, 30*time.Second, time.Second).Should(Succeed())
		Expect(firing(ctx, Default, "firing")).To(BeEmpty(), "under a load that is refused as it should")

		s.apply(ctx, fmt.Sprintf(`
apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: astray, namespace: %s}
spec:
  podSelector: {matchLabels: {app: nobody}}
  limits: [{name: world, scope: Federated, budgetRef: {name: nowhere}}]
`, s.namespace))
		Eventually(func(g Gomega) []string { return firing(ctx, g, "pending") }, time.Minute, time.Second).Should(ContainElement("WeirNotAccepted"))
		Eventually(func(g Gomega) []string { return firing(ctx, g, "firing") }, 2*time.Minute, time.Second).Should(Equal([]string{"WeirNotAccepted"}))
		Expect(series(ctx, Default, `ALERTS{alertname="WeirNotAccepted"}`)).To(ConsistOf(And(
			HaveKeyWithValue("namespace", s.namespace), HaveKeyWithValue("name", "astray"), HaveKeyWithValue("severity", "warning"))))

		s.kubectl(ctx, "-n", s.namespace, "delete", "ratelimitpolicy", "astray")
		Eventually(func(g Gomega) []string { return firing(ctx, g, "firing") }, time.Minute, time.Second).Should(BeEmpty())
	}, SpecTimeout(6*time.Minute))
})
