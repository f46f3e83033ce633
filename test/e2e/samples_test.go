//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/controlplane/inject"
)

// samplesHere returns those of config/samples that are for the application of this suite
// and a store that runs in its cluster, in the shop's namespace.
func (s *shop) samplesHere() (manifests []string) {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(root, "config", "samples", "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		data, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		text := string(data)
		elsewhere := strings.Contains(text, "type: Postgres") || strings.Contains(text, "secretRef:") || strings.Contains(text, "sentinel:")
		if elsewhere || strings.Contains(text, "kind: FederatedBudget") || strings.Contains(text, "budgetRef:") || !strings.Contains(text, "app: checkout") {
			continue
		}
		manifests = append(manifests, strings.ReplaceAll(text, "redis.weir-system.svc", "redis."+s.namespace+".svc"))
	}
	return manifests
}

// followed returns when all pods follow all policies and pools of the namespace.
func (s *shop) followed(ctx context.Context) {
	GinkgoHelper()
	s.kubectl(ctx, "-n", s.namespace, "wait", "ratelimitpolicies,concurrencypools", "--all", "--for=condition=Programmed", "--timeout=90s")
}

// adminPort returns where the pod's sidecar serves its metrics.
func adminPort(pod *corev1.Pod) string {
	for _, c := range pod.Spec.InitContainers {
		for _, p := range c.Ports {
			if p.Name == inject.AdminPortName {
				return strconv.Itoa(int(p.ContainerPort))
			}
		}
	}
	return ""
}

var _ = Describe("All samples for one application", func() {
	It("are followed at once, and no pod loses its stream", func(ctx SpecContext) {
		s := openShop(ctx)
		s.startRedis(ctx)
		manifests := s.samplesHere()
		Expect(len(manifests)).To(BeNumerically(">", 15))
		s.apply(ctx, strings.Join(manifests, "\n---\n"), "-n", s.namespace)
		Expect(kube.Create(ctx, s.service("checkout", "checkout", 80, 8080))).To(Succeed())
		s.deploy(ctx, 2)
		s.followed(ctx)
		s.startLoad(ctx, 10)

		from := time.Now()
		sleepUntil(ctx, from.Add(15*time.Second)) // long enough for reports, returns and audits
		s.followed(ctx)
		o := s.outcomes(ctx, from, time.Now())
		Expect(o["admitted"]).To(BeNumerically(">", 0), "%v", o)
		s.nobodyMissed(ctx, from)
		pods, err := clientset.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=checkout"})
		Expect(err).NotTo(HaveOccurred())
		Expect(pods.Items).To(HaveLen(2))
		for i := range pods.Items {
			metrics, err := clientset.CoreV1().Pods(s.namespace).ProxyGet("http", pods.Items[i].Name, adminPort(&pods.Items[i]), "metrics", nil).DoRaw(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(metrics)).To(MatchRegexp(`(?m)^weir_fleet_streams_total 1$`), "%s lost its stream", pods.Items[i].Name)
		}
	}, SpecTimeout(4*time.Minute))
})
