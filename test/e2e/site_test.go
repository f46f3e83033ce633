//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/hack/kind/cluster"
)

// A site is one cluster with Weir in it.
type site struct {
	name       string // of the cluster among the members of a budget
	kubeconfig string

	kube      client.Client
	clientset kubernetes.Interface // for what kube cannot: a pod's log, and the way to its ports
}

// newSite is a site whose cluster may not be there yet.
func newSite(name string) *site {
	return &site{name: name, kubeconfig: filepath.Join(root, ".cache", "e2e", name, "kubeconfig")}
}

// create makes the cluster, with nodes beside the control plane's, and deletes it when the container is over.
func (s *site) create(ctx context.Context, name string, workers int) *cluster.Cluster {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Dir(s.kubeconfig), 0o755)).To(Succeed())
	began := time.Now()
	made, err := cluster.Create(ctx, cluster.Config{Name: name, Workers: workers, Kubeconfig: s.kubeconfig, Progress: GinkgoWriter})
	if unavailable, ok := errors.AsType[*cluster.UnavailableError](err); ok {
		Fail("this machine cannot run a cluster: " + unavailable.Error())
	}
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		if !keep() {
			Expect(made.Delete(ctx)).To(Succeed())
		}
	}, NodeTimeout(time.Minute))
	AddReportEntry(name+" stands after", time.Since(began).Round(time.Second).String())
	return made
}

// connect makes the clients.
func (s *site) connect() {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	config.QPS, config.Burst = 100, 200
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	s.kube, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	s.clientset, err = kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
}

// address is where the control plane's node is reached, also by pods of a cluster that was joined.
func (s *site) address(ctx context.Context) string {
	GinkgoHelper()
	nodes, err := s.clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "node-role.kubernetes.io/control-plane"})
	Expect(err).NotTo(HaveOccurred())
	Expect(nodes.Items).To(HaveLen(1))
	for _, a := range nodes.Items[0].Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	Fail("the node has no address")
	return ""
}

// helm runs helm and returns what it prints.
func (s *site) helm(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return s.run(ctx, "", filepath.Join(root, ".cache", "bin", "helm"), args...)
}

// kubectl runs kubectl and returns what it prints.
func (s *site) kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return s.run(ctx, "", filepath.Join(root, ".cache", "assets", "kubectl"), args...)
}

// weir runs the plugin of kubectl and returns what it prints.
func (s *site) weir(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return s.run(ctx, "", filepath.Join(root, "bin", "kubectl-weir"), args...)
}

// apply applies manifests.
func (s *site) apply(ctx context.Context, manifests string, more ...string) {
	GinkgoHelper()
	s.run(ctx, manifests, filepath.Join(root, ".cache", "assets", "kubectl"), append([]string{"apply", "-f", "-"}, more...)...)
}

// run runs a program against the cluster.
func (s *site) run(ctx context.Context, input, program string, args ...string) string {
	GinkgoHelper()
	ctx, done := context.WithTimeout(ctx, 3*time.Minute)
	defer done()
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig)
	command.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	Expect(command.Run()).To(Succeed(), "%s %s: %s", filepath.Base(program), strings.Join(args, " "), &stderr)
	return stdout.String()
}
