package default_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestImagesAreChosenByKustomize is what docs/install.md promises: both images, also the
// one that is only handed on to pods, follow `images` of the kustomization that includes config/default.
func TestImagesAreChosenByKustomize(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	base, err := filepath.Rel(directory, here)
	if err != nil {
		t.Fatal(err)
	}
	overlay := `
resources: [` + base + `]
images:
- {name: weir-controller, newName: registry.example/weir-controller, newTag: v1.2.3}
- {name: weir-sidecar, newName: registry.example/weir-sidecar, digest: "sha256:` + strings.Repeat("a", 64) + `"}
`
	if err := os.WriteFile(filepath.Join(directory, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	var container corev1.Container
	for _, component := range []string{"weir-controller", "weir-webhook"} { // the latter is looked at below
		container = as[appsv1.Deployment](t, render(t, directory), "Deployment/"+component).Spec.Template.Spec.Containers[0]
		if want := "registry.example/weir-controller:v1.2.3"; container.Image != want {
			t.Errorf("the image of %s is %q, want %q", component, container.Image, want)
		}
	}
	name, given := "", ""
	for _, v := range container.Env {
		if v.Name == "SIDECAR_IMAGE" {
			name, given = v.Name, v.Value
		}
	}
	if want := "registry.example/weir-sidecar@sha256:" + strings.Repeat("a", 64); given != want {
		t.Errorf("%s is %q, want %q", name, given, want)
	}
	if want := "--sidecar-image=$(SIDECAR_IMAGE)"; container.Args[1] != want {
		t.Errorf("the webhooks are started with %q, want %q", container.Args[1], want)
	}
}
