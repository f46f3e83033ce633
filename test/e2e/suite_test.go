//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/hack/kind/cluster"
)

// All specs share one cluster and use namespaces of their own.
const clusterName = "weir-e2e"

var (
	here      *site
	kube      client.Client
	clientset kubernetes.Interface
	root      string // of the checkout

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
	kind = here.create(ctx, clusterName, workers())
	began := time.Now()
	Expect(kind.Load(ctx, images()...)).To(Succeed())
	here.connect()
	here.install(ctx, here.address(ctx))
	AddReportEntry("Weir is installed after", time.Since(began).Round(time.Second).String())
}, func(SpecContext) {
	locate()
	here.connect()
	kube, clientset = here.kube, here.clientset
}, NodeTimeout(35*time.Minute)) // the first time a machine builds the node image

// locate finds the checkout, and where the cluster that all specs share is.
func locate() {
	GinkgoHelper()
	var err error
	root, err = filepath.Abs("../..")
	Expect(err).NotTo(HaveOccurred())
	here = newSite("eu-west")
	log.SetLogger(GinkgoLogr)
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
