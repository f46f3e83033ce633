package plugin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/testing/devcluster/portforward"
)

// A node serves port-forwarding as kubelets do: what is sent to the check port of a pod goes to
// a handler, and other ports are closed.
func node(t *testing.T, h http.Handler) {
	t.Helper()
	inner := httptest.NewServer(h)
	t.Cleanup(inner.Close)
	kubelet := httptest.NewTLSServer(portforward.Handler(func(r *http.Request, port string) (net.Conn, error) {
		if port != strconv.Itoa(checkPort) {
			return nil, errors.New("port " + port + " is closed")
		}
		return new(net.Dialer).DialContext(r.Context(), "tcp", inner.Listener.Addr().String())
	}))
	t.Cleanup(kubelet.Close)
	nodeAt(t, kubelet.Listener.Addr().String())
}

// nodeAt creates a node whose kubelet is at an address.
func nodeAt(t *testing.T, address string) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	worker := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	create(t, worker, func() {
		worker.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
		worker.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number)
	})
}

// TestANodeReportsWhyThereIsNoConnection: a sidecar that does not listen is an error with its cause.
func TestANodeReportsWhyThereIsNoConnection(t *testing.T) {
	node(t, http.NotFoundHandler())
	createNamespace(t)
	pod := sidecarIn(t, running("checkout-1"))
	pod.Spec.NodeName = "worker"
	createPod(t, pod)
	where := newNamespaced(&cobra.Command{})
	where.rules.ExplicitPath = kubeconfig
	at, err := where.open()
	if err != nil {
		t.Fatal(err)
	}
	way, err := openTunnel(t.Context(), at.config, pod, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer way.close()
	if _, err := (sidecar{way.client()}).config(t.Context()); err == nil || !strings.Contains(err.Error(), "port 1 is closed") {
		t.Errorf("error %v, want that of the node", err)
	}
}

// TestANodeThatIsSilentIsNotWaitedFor: an API server waits for it, and the command does not.
func TestANodeThatIsSilentIsNotWaitedFor(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	nodeAt(t, silent.Addr().String())
	createNamespace(t)
	pod := sidecarIn(t, running("checkout-1"))
	pod.Spec.NodeName = "worker"
	createPod(t, pod)
	where := newNamespaced(&cobra.Command{})
	where.rules.ExplicitPath = kubeconfig
	at, err := where.open()
	if err != nil {
		t.Fatal(err)
	}
	asked := errors.New("asked for long enough")
	ctx, enough := context.WithCancelCause(t.Context())
	go func() { // as soon as the API server has asked the node
		c, err := silent.Accept()
		enough(asked)
		if err == nil {
			<-t.Context().Done()
			_ = c.Close()
		}
	}()
	if _, err := openTunnel(ctx, at.config, pod, checkPort); !errors.Is(err, asked) || !strings.Contains(err.Error(), "no way to the node") {
		t.Errorf("error %v", err)
	}
}
