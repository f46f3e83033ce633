//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// addons labels what `make e2e-addons` alone runs, on a cluster with workers.
var addons = Label("addons")

// workers is how many nodes there are beside the control plane's.
func workers() int {
	if GinkgoLabelFilter() == addons[0] {
		return 2
	}
	return 0
}

// monitoring is the namespace of Prometheus, and of all that read metrics.
const monitoring = "monitoring"

// manifest reads a file of testdata.
func manifest(name string) string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// repositoryFile reads a file of the checkout.
func repositoryFile(path ...string) string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// built returns the path of a program that hack/addons.sh builds.
func built(program string) string {
	GinkgoHelper()
	file := filepath.Join(root, ".cache", "bin", program)
	Expect(file).To(BeARegularFile(), "run the suite with `make e2e-addons`, which builds it")
	return file
}

// startServer applies the manifest of a Deployment of the namespace monitoring, with the files that it
// is configured by, and returns when it is available.
func startServer(ctx context.Context, name, text string, files map[string]string) {
	GinkgoHelper()
	object := metav1.ObjectMeta{Name: name, Namespace: monitoring}
	here.apply(ctx, text)
	here.apply(ctx, string(marshal(corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: object, Data: files,
	})))
	awaitRollout(ctx, &appsv1.Deployment{ObjectMeta: object})
}

// enforceNetworkPolicies runs the firewall of kube-router on every node.
func enforceNetworkPolicies(ctx context.Context) {
	GinkgoHelper()
	p := pack{"/usr/bin/kube-router": built("kube-router")}
	p.program(ctx, "/usr/sbin/ipset", installed("ipset"))
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore"} {
		p.program(ctx, "/usr/sbin/"+name, installed("xtables-nft-multi")) // does what its name says
	}
	extensions, err := filepath.Glob("/usr/lib/*/xtables/*.so")
	Expect(err).NotTo(HaveOccurred())
	Expect(extensions).NotTo(BeEmpty())
	for _, file := range extensions {
		p[file] = file
	}
	p.load(ctx, "weir-test-kube-router:local", "/usr/bin/kube-router")
	here.apply(ctx, manifest("kube-router.yaml"))
	agents := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "kube-router", Namespace: metav1.NamespaceSystem}}
	Eventually(func(g Gomega) {
		g.Expect(kube.Get(ctx, client.ObjectKeyFromObject(agents), agents)).To(Succeed())
		g.Expect(agents.Status.NumberReady).To(BeEquivalentTo(len(kind.Nodes())))
	}, "1m", "500ms").Should(Succeed())
}

// set upgrades Weir with further values of the chart.
func (s *site) set(ctx context.Context, values ...string) {
	GinkgoHelper()
	args := []string{"upgrade", release, filepath.Join(root, "charts", "weir"), "--namespace", system, "--reuse-values", "--wait", "--timeout", "2m"}
	for _, value := range values {
		args = append(args, "--set", value)
	}
	s.helm(ctx, args...)
}

// admitByTheChart has the chart's NetworkPolicies admit the API server to the webhooks, no cluster to the
// hub, and the namespace monitoring to metrics.
func (s *site) admitByTheChart(ctx context.Context) {
	GinkgoHelper()
	s.set(ctx, "networkPolicy.enabled=true",
		"networkPolicy.from.webhook[0].ipBlock.cidr="+s.address(ctx)+"/32",
		"networkPolicy.from.hub[0].ipBlock.cidr=192.0.2.0/24",
		`networkPolicy.from.metrics[0].namespaceSelector.matchLabels.kubernetes\.io/metadata\.name=`+monitoring)
}

// applyExample applies an example of config/networkpolicy to the shop.
func (s *shop) applyExample(ctx context.Context, name string) {
	GinkgoHelper()
	s.apply(ctx, strings.ReplaceAll(repositoryFile("config", "networkpolicy", name), "namespace: shop", "namespace: "+s.namespace))
}

// byPort has sidecars capture by the name of the port.
func byPort(ns *corev1.Namespace) { ns.Annotations[v1alpha1.CaptureAnnotation] = "port" }

// podsOf returns the pods that a label selects, and fails when there are none.
func podsOf(ctx context.Context, namespace, selector string) []corev1.Pod {
	GinkgoHelper()
	pods, err := clientset.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	Expect(err).NotTo(HaveOccurred())
	Expect(pods.Items).NotTo(BeEmpty())
	return pods.Items
}

// namesOf returns the namespace and name of each pod that a label selects.
func namesOf(ctx context.Context, namespace, selector string) (names []string) {
	GinkgoHelper()
	for _, pod := range podsOf(ctx, namespace, selector) {
		names = append(names, pod.Namespace+"/"+pod.Name)
	}
	return names
}
