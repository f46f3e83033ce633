package plugin

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// A node serves port-forwarding as kubelets do: what is sent to the check port of a pod goes to
// a handler, and other ports are closed.
func node(t *testing.T, h http.Handler) {
	t.Helper()
	inner := httptest.NewServer(h)
	t.Cleanup(inner.Close)
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(httpstream.HeaderProtocolVersion, "portforward.k8s.io")
		var mu sync.Mutex
		waiting := map[string]httpstream.Stream{} // for its other half
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
			mu.Lock()
			defer mu.Unlock()
			id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
			other, ok := waiting[id]
			waiting[id] = s
			switch {
			case !ok:
			case s.Headers().Get(corev1.StreamType) == corev1.StreamTypeData:
				go carry(inner.Listener.Addr().String(), s, other)
			default:
				go carry(inner.Listener.Addr().String(), other, s)
			}
			return nil
		})
		if connection != nil {
			<-connection.CloseChan()
		}
	}))
	t.Cleanup(kubelet.Close)
	host, port, err := net.SplitHostPort(kubelet.Listener.Addr().String())
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

func carry(address string, data, failures httpstream.Stream) {
	defer data.Close()
	defer failures.Close()
	if port := data.Headers().Get(corev1.PortHeader); port != strconv.Itoa(checkPort) {
		io.WriteString(failures, "port "+port+" is closed")
		return
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		io.WriteString(failures, err.Error())
		return
	}
	defer c.Close()
	go func() {
		io.Copy(c, data)
		c.Close()
	}()
	io.Copy(data, c)
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
	way, err := openTunnel(at.config, pod, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer way.close()
	if _, err := (sidecar{way.client()}).config(t.Context()); err == nil || !strings.Contains(err.Error(), "port 1 is closed") {
		t.Errorf("error %v, want that of the node", err)
	}
}
