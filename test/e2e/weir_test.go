//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	system  = "weir-system"
	release = "weir"

	// imagesVersion is the tag under which `make e2e` packs the images.
	imagesVersion = "IMAGE_VERSION"
)

// install installs Weir as a user would, as a member of budgets that listens for others at
// an address, and returns when it is ready.
func (s *site) install(ctx context.Context, address string) {
	GinkgoHelper()
	tag := os.Getenv(imagesVersion)
	Expect(tag).NotTo(BeEmpty(), imagesVersion+" is not set: run the suite with `make e2e`")
	s.helm(ctx, "install", release, filepath.Join(root, "charts", "weir"),
		"--namespace", system, "--create-namespace", "--wait", "--timeout", "2m",
		"--set-string", "images.controller.tag="+tag+",images.sidecar.tag="+tag, // a commit may be all digits
		"--set", "controller.clusterName="+s.name,
		"--set", "hub.serviceType=NodePort", "--set", "controller.federationSANs={"+address+"}")
}

// controller is the Deployment that grants and reports.
func controller() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "weir-controller", Namespace: system}}
}

// webhooks is the Deployment that the API server asks.
func webhooks() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "weir-webhook", Namespace: system}}
}
