//go:build fleet

package fleet

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/internal/testing/devcluster"
)

const assets = "KUBEBUILDER_ASSETS"

// more labels what `make test-fleet-more` alone runs: the suite on a real cluster shows
// the like.
var more = Label("more")

// All specs of a process share one cluster and use namespaces of their own.
var (
	here    *site
	cluster *devcluster.Cluster
	kube    client.Client
	root    string // of the checkout
	workDir string // where logs are found when a spec fails
)

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Weir on this machine")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	root, err = filepath.Abs("../..")
	Expect(err).NotTo(HaveOccurred())
	Expect(os.Getenv(assets)).NotTo(BeEmpty(), assets+" is not set: run the suite with `make test-fleet`")
	for _, program := range []string{"controller", "sidecar", "demo-app"} {
		Expect(binary(program)).To(BeARegularFile(), "run the suite with `make test-fleet`, which builds it")
	}
	workDir = filepath.Join(root, ".cache", "fleet", strconv.Itoa(GinkgoParallelProcess()))
	Expect(os.RemoveAll(workDir)).To(Succeed())
	log.SetLogger(GinkgoLogr)
	here = openSite(ctx, "eu-west", workDir)
	cluster, kube = here.cluster, here.kube
}, NodeTimeout(2*time.Minute))

func binary(name string) string { return filepath.Join(root, "bin", name) }

// program says which local program stands for an image.
func program(pod *corev1.Pod, image string) (string, bool) {
	switch image {
	case devcluster.SidecarImage:
		if direction := pod.Labels[skewedLabel]; direction != "" {
			return skewedSidecar(direction), true
		}
		return binary("sidecar"), true
	default:
		return binary("demo-app"), image == appImage
	}
}

// get reads an object again.
func get[T client.Object](ctx context.Context, g Gomega, o T) T {
	g.Expect(kube.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
	return o
}
