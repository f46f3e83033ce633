//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Last, because what it installs is not a member of budgets.
var _ = Describe("Uninstalling", Serial, SpecPriority(-1), func() {
	It("leaves nothing behind, and the other way of installing works", func(ctx SpecContext) {
		s := openShop(ctx)
		s.limitTo(ctx, limit, deny)
		s.bound(ctx, limit)
		s.budget(ctx, "[{name: "+s.name+"}]")
		s.deploy(ctx, 1)
		s.awaitProgrammed(ctx, 1)
		s.awaitBound(ctx, 1)
		s.awaitConnected(ctx, metav1.ConditionTrue)

		here.helm(ctx, "uninstall", release, "--namespace", system, "--wait", "--timeout", "1m")
		here.kubectl(ctx, "delete", "namespace", system, "--wait")
		Expect(here.kubectl(ctx, "get", "pods", "-n", s.namespace, "-l", "app=checkout")).To(ContainSubstring("2/2"), "pods keep what they were given")
		removeDefinitions(ctx)
		Expect(leftBehind(ctx)).To(BeEmpty())

		here.apply(ctx, installManifest())
		awaitRollout(ctx, controller())
		again := openShop(ctx)
		again.limitTo(ctx, limit)
		again.deploy(ctx, 1)
		again.awaitProgrammed(ctx, 1)
	}, SpecTimeout(4*time.Minute))
})

// removeDefinitions removes the kinds, and with them every policy. Helm leaves that to
// a person.
func removeDefinitions(ctx context.Context) {
	GinkgoHelper()
	here.kubectl(ctx, "delete", "crd", "ratelimitpolicies.weir.dev", "concurrencypools.weir.dev", "federatedbudgets.weir.dev")
}

// leftBehind lists the objects with our name of all kinds that are not namespaced, except
// nodes, which have it from the cluster. Namespaced objects went with their namespace.
func leftBehind(ctx context.Context) []string {
	GinkgoHelper()
	var left []string
	for resource := range strings.FieldsSeq(here.kubectl(ctx, "api-resources", "--verbs=list", "--namespaced=false", "-o", "name")) {
		for object := range strings.FieldsSeq(here.kubectl(ctx, "get", resource, "-o", "name")) {
			_, name, _ := strings.Cut(object, "/")
			if strings.Contains(name, "weir") && !slices.Contains(kind.Nodes(), name) {
				left = append(left, object)
			}
		}
	}
	return left
}

// installManifest is the one file that `make install-manifest` writes, with the images
// of this version.
func installManifest() string {
	GinkgoHelper()
	manifest, err := os.ReadFile(filepath.Join(root, "dist", "install.yaml"))
	Expect(err).NotTo(HaveOccurred(), "run the suite with `make e2e`, which writes it")
	return string(manifest)
}
