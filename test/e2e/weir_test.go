//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

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

// install installs Weir as a user would, and returns when it is ready.
func install(ctx context.Context) {
	GinkgoHelper()
	tag := os.Getenv(imagesVersion)
	Expect(tag).NotTo(BeEmpty(), imagesVersion+" is not set: run the suite with `make e2e`")
	helm(ctx, "install", release, filepath.Join(root, "charts", "weir"),
		"--namespace", system, "--create-namespace", "--wait", "--timeout", "2m",
		"--set", "images.controller.tag="+tag, "--set", "images.sidecar.tag="+tag)
}

// controller is the Deployment that grants and reports.
func controller() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "weir-controller", Namespace: system}}
}

// webhooks is the Deployment that the API server asks.
func webhooks() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "weir-webhook", Namespace: system}}
}

// helm runs helm and returns what it says.
func helm(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return run(ctx, "", filepath.Join(root, ".cache", "bin", "helm"), args...)
}

// kubectl runs kubectl and returns what it says.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return run(ctx, "", filepath.Join(root, ".cache", "assets", "kubectl"), args...)
}

// apply applies manifests.
func apply(ctx context.Context, manifests string) {
	GinkgoHelper()
	run(ctx, manifests, filepath.Join(root, ".cache", "assets", "kubectl"), "apply", "-f", "-")
}

// run runs a program against the cluster.
func run(ctx context.Context, input, program string, args ...string) string {
	GinkgoHelper()
	ctx, done := context.WithTimeout(ctx, 3*time.Minute)
	defer done()
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	command.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	Expect(command.Run()).To(Succeed(), "%s %s: %s", filepath.Base(program), strings.Join(args, " "), &stderr)
	return stdout.String()
}
