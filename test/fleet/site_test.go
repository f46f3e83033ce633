//go:build fleet

package fleet

import (
	"context"
	"log/slog"
	"os"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster"
)

// A site is one cluster and a client of it.
type site struct {
	name    string // among the members of a federation
	cluster *devcluster.Cluster
	kube    client.Client
}

// openSite starts a cluster that keeps its files in a directory, and stops it when the
// container is over.
func openSite(ctx context.Context, name, dir string) *site {
	GinkgoHelper()
	return openSiteOf(ctx, name, devcluster.Config{
		Root: root, Assets: os.Getenv(assets), Dir: dir, Name: name,
		Controller: binary("controller"), ControllerArgs: append(slices.Clone(devcluster.QuickLeaderElection), "--federation-ids=*=*"),
		Program: program, Log: slog.New(slog.NewTextHandler(GinkgoWriter, nil)),
	})
}

// openSiteOf starts a cluster, and stops it when the container is over.
func openSiteOf(ctx context.Context, name string, cfg devcluster.Config) *site {
	GinkgoHelper()
	c, err := devcluster.Start(ctx, cfg)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(c.Stop)
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	s := &site{name: name, cluster: c}
	s.kube, err = client.New(c.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return s
}
