//go:build e2e

package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/hack/kind/cluster"
)

// All specs share one cluster and use namespaces of their own.
const clusterName = "weir-e2e"

var (
	kube       client.Client
	clientset  kubernetes.Interface // for what kube cannot: a pod's log, and the way to its ports
	kubeconfig string
	root       string // of the checkout

	// kind is the cluster on the process that created it, where the Serial specs run
	// too, and nil on the others.
	kind *cluster.Cluster
)

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Weir on a real cluster")
}

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) {
	locate()
	createCluster(ctx)
	began := time.Now()
	Expect(kind.Load(ctx, images()...)).To(Succeed())
	install(ctx)
	AddReportEntry("Weir is installed after", time.Since(began).Round(time.Second).String())
}, func(SpecContext) {
	locate()
	log.SetLogger(GinkgoLogr)
	connect()
}, NodeTimeout(35*time.Minute)) // the first time a machine builds the node image

// locate finds the checkout and what belongs into it.
func locate() {
	GinkgoHelper()
	var err error
	root, err = filepath.Abs("../..")
	Expect(err).NotTo(HaveOccurred())
	kubeconfig = filepath.Join(root, ".cache", "e2e", "kubeconfig")
}

func createCluster(ctx context.Context) {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Dir(kubeconfig), 0o755)).To(Succeed())
	began := time.Now()
	var err error
	kind, err = cluster.Create(ctx, cluster.Config{Name: clusterName, Kubeconfig: kubeconfig, Progress: GinkgoWriter})
	if unavailable, ok := errors.AsType[*cluster.UnavailableError](err); ok {
		Fail("this machine cannot run a cluster: " + unavailable.Error())
	}
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		if !keep() {
			Expect(kind.Delete(ctx)).To(Succeed())
		}
	}, NodeTimeout(time.Minute))
	AddReportEntry("a cluster stands after", time.Since(began).Round(time.Second).String())
}

func connect() {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	config.QPS, config.Burst = 100, 200
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	kube, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	clientset, err = kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
}

// keep reports whether the cluster is left for a person to look at.
func keep() bool { return os.Getenv("E2E_KEEP") != "" }

func images() []string {
	var archives []string
	for _, name := range []string{"weir-controller", "weir-sidecar", "weir-test-app"} {
		archive := filepath.Join(root, "dist", "images", name+".tar")
		Expect(archive).To(BeARegularFile(), "run the suite with `make e2e`, which packs it")
		archives = append(archives, archive)
	}
	return archives
}

// get reads an object again.
func get[T client.Object](ctx context.Context, g Gomega, o T) T {
	g.Expect(kube.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
	return o
}
