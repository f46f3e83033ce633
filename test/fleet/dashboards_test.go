//go:build fleet

package fleet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// watched is a namespace with an object of each kind that dashboards show.
const watched = `
apiVersion: weir.dev/v1alpha1
kind: FederatedBudget
metadata: {name: world, namespace: NAMESPACE}
spec:
  id: watched/NAMESPACE
  rate: {limit: 2000, window: 5s}
  members: [{name: SITE}]
---
apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: checkout, namespace: NAMESPACE}
spec:
  podSelector: {matchLabels: {app: checkout}}
  limits:
  - {name: all, rates: [{limit: 500, window: 5s}]}
  - {name: dry-run, mode: Shadow, rates: [{limit: 100, window: 5s}]}
  - name: per-client
    key: {parts: [{type: Header, header: {name: x-client}}]}
    rates: [{limit: 400, window: 5s}]
  - {name: world, scope: Federated, budgetRef: {name: world}}
---
apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: redis, namespace: NAMESPACE}
spec:
  podSelector: {matchLabels: {app: checkout}}
  limits:
  - {name: all, rates: [{limit: 1000, window: 5s}]}
  store: {type: Redis, redis: {address: "REDIS", tls: Disabled}}
---
apiVersion: weir.dev/v1alpha1
kind: ConcurrencyPool
metadata: {name: checkout, namespace: NAMESPACE}
spec:
  podSelector: {matchLabels: {app: checkout}}
  limit: {min: 4, initial: 4, max: 8}
  partitions: [{name: live, guaranteedPercent: 10, match: [{headers: [{name: x-client, value: "1"}]}]}]
  queue: {maxLength: 2, maxWait: 50ms}
  key: {parts: [{type: Header, header: {name: x-client}}], limit: 8, queue: {maxLength: 2, maxWait: 50ms}}
`

// silent are panels, or queries by their legend, that have no series here, each for a reason.
var silent = map[string]string{
	"Calls to this hub": "no other cluster is a member",
	"limit":             "the processes have no container with a limit of memory",
	"{{code}}":          "no stream ends",
	"rejected rows":     "the controller reads all rows",
	"answered {{code}}": "no review is refused",
	"{{policy}}/{{limit}} while the leader changed": "the leader does not change before",
	"beyond {{bound}}": "no bound of the port is met",
}

// A shown is a query of a dashboard.
type shown struct{ dashboard, panel, expr, legend string }

// dashboards returns the queries of all panels, and of all annotations, for a namespace.
func dashboards(namespace string) (panels, annotations []shown) {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(root, "config", "monitoring", "weir-*.json"))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).To(HaveLen(3))
	for _, file := range files {
		var d struct {
			Title       string
			Annotations struct {
				List []struct{ Name, Expr string }
			}
			Panels []struct {
				Title   string
				Targets []struct{ Expr, LegendFormat string }
			}
		}
		Expect(json.Unmarshal(monitoring(filepath.Base(file)), &d)).To(Succeed())
		// A minute of a graph is some seconds here.
		here := strings.NewReplacer("$__rate_interval", "10s", "$namespace", namespace, "$policy", ".*", "$pool", ".*", "offset 1m", "offset 15s")
		for _, a := range d.Annotations.List {
			annotations = append(annotations, shown{d.Title, a.Name, here.Replace(a.Expr), ""})
		}
		for _, p := range d.Panels {
			for _, t := range p.Targets {
				panels = append(panels, shown{d.Title, p.Title, here.Replace(t.Expr), t.LegendFormat})
			}
		}
	}
	return panels, annotations
}

var legendLabels = regexp.MustCompile(`\{\{([a-z_]+)\}\}`)

// misses returns what is wrong with the answer to a query: no series, no number, or a legend
// with a label that no series has.
func (q shown) misses(answer []series) string {
	if !slices.ContainsFunc(answer, func(s series) bool { return s.Value[1] != "NaN" }) {
		return fmt.Sprintf("%s: %s: no series of %s", q.dashboard, q.panel, q.expr)
	}
	for _, label := range legendLabels.FindAllStringSubmatch(q.legend, -1) {
		if !slices.ContainsFunc(answer, func(s series) bool { return s.Metric[label[1]] != "" }) {
			return fmt.Sprintf("%s: %s: no label %s in %v", q.dashboard, q.panel, label[1], answer[0].Metric)
		}
	}
	return ""
}

// autoscaled returns the queries of KEDA's sample for a namespace.
func autoscaled(namespace string) (queries []string) {
	GinkgoHelper()
	var keda struct {
		Spec struct {
			Triggers []struct{ Metadata struct{ Query string } }
		}
	}
	Expect(yaml.Unmarshal(sample("keda.yaml"), &keda)).To(Succeed())
	for _, t := range keda.Spec.Triggers {
		queries = append(queries, strings.ReplaceAll(t.Metadata.Query, `namespace="shop"`, `namespace="`+namespace+`"`))
	}
	return queries
}

var _ = Describe("Prometheus", func() {
	It("has data for every panel, alert and autoscaler", func(ctx SpecContext) {
		b := openBasin(ctx)
		redis, _ := startRedis(ctx)
		Expect(cluster.Apply(ctx, []byte(strings.NewReplacer("NAMESPACE", b.namespace, "SITE", here.name, "REDIS", string(redis.Redis.Address)).Replace(watched)))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			for _, kind := range []client.Object{&v1alpha1.RateLimitPolicy{}, &v1alpha1.ConcurrencyPool{}, &v1alpha1.FederatedBudget{}} {
				Expect(kube.DeleteAllOf(ctx, kind, client.InNamespace(b.namespace))).To(Succeed())
			}
		})
		b.deploy(ctx, "checkout", 3, nil)
		p := startPrometheus(ctx, b.shop)
		var n atomic.Int64
		b.startLoadOf(overload, func(r *http.Request) { r.Header.Set("X-Client", fmt.Sprint(n.Add(1)%7)) })

		panels, annotations := dashboards(b.namespace)
		// A graph shows what there was at one time or another.
		waiting := slices.DeleteFunc(slices.Clone(panels), func(q shown) bool { return silent[q.legend] != "" || silent[q.panel] != "" })
		asked := len(waiting)
		Eventually(func() (missing []string) {
			waiting = slices.DeleteFunc(waiting, func(q shown) bool {
				why := q.misses(p.query(ctx, Default, q.expr))
				if why != "" {
					missing = append(missing, why)
				}
				return why == ""
			})
			return missing
		}, 2*longest, time.Second).Should(BeEmpty())
		fmt.Fprintf(GinkgoWriter, "%d of %d queries of panels have data\n", asked, len(panels))
		offered := append(choices(b.namespace), discovered()...)
		Expect(len(offered)).To(BeNumerically(">=", 7))
		for _, q := range offered {
			Expect(q.misses(p.query(ctx, Default, q.expr))).To(BeEmpty())
		}
		for _, query := range autoscaled(b.namespace) {
			Expect(p.query(ctx, Default, query)).To(HaveLen(1), query)
		}
		Eventually(func(g Gomega) {
			health := p.health(ctx, g)
			g.Expect(len(health)).To(BeNumerically(">", 20))
			g.Expect(health).To(HaveEach("ok"))
		}, longest, time.Second).Should(Succeed())

		mark := func(name string) {
			GinkgoHelper()
			for _, a := range annotations {
				if a.panel == name {
					Eventually(func() []series { return p.query(ctx, Default, a.expr) }, longest, 250*time.Millisecond).ShouldNot(BeEmpty(), a.expr)
				}
			}
		}
		policy := policyIn(b.namespace)
		Eventually(func(g Gomega) {
			get(ctx, g, policy)
			policy.Spec.Limits[0].Rates[0].Limit++
			g.Expect(kube.Update(ctx, policy)).To(Succeed())
		}, longest).Should(Succeed())
		mark("Edits")
		cluster.Controller.Stop()
		Expect(cluster.Controller.Start(ctx)).To(Succeed())
		mark("Leader changes")
	}, SpecTimeout(6*time.Minute))
})
