package podrunner

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/internal/controlplane/inject"
)

// TestRedirectionIsRefused: the packets of a process are the machine's.
func TestRedirectionIsRefused(t *testing.T) {
	c := &container{spec: &corev1.Container{Name: inject.CaptureContainerName, Args: []string{"capture", "--redirect=8080:15006"}}}
	_, err := c.program()
	if err == nil || !strings.Contains(err.Error(), "config.weir.dev/capture: port") {
		t.Errorf("error %v, want one that names the cure", err)
	}
}
