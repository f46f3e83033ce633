package sidecar

import (
	"os/exec"
	"strings"
	"testing"
)

// TestTheSidecarKnowsNoKubernetes keeps the binary small and without rights: what
// it does not link it cannot call. The configuration of Envoy, which comes with its protocols,
// would be in the memory of each process.
func TestTheSidecarKnowsNoKubernetes(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "github.com/weir-dev/weir/cmd/sidecar").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 100 {
		t.Fatalf("only %d packages: this is not the sidecar", len(deps))
	}
	for _, dep := range deps {
		for _, banned := range []string{"k8s.io/", "sigs.k8s.io/", "github.com/weir-dev/weir/api", "github.com/weir-dev/weir/internal/controlplane/coordinator", "github.com/envoyproxy/", "github.com/cncf/xds"} {
			if strings.HasPrefix(dep, banned) {
				t.Errorf("it links %s", dep)
			}
		}
	}
}
