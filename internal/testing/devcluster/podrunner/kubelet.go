package podrunner

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"

	"github.com/weir-dev/weir/internal/testing/devcluster/portforward"
)

// serveKubelet serves on the node's address what an API server asks a kubelet on behalf of kubectl:
// logs of containers, each as a whole, and connections to ports of pods. It returns a function that
// ends it.
func (r *Runner) serveKubelet() (stop func()) {
	mux := http.NewServeMux()
	mux.Handle("/portForward/{namespace}/{pod}", portforward.Handler(r.dial))
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, q *http.Request) {
		http.ServeFile(w, q, r.logFile(q.PathValue("namespace"), q.PathValue("pod"), q.PathValue("container")))
	})
	server := httptest.NewUnstartedServer(mux)
	_ = server.Listener.Close()
	server.Listener = r.Network.claim
	server.StartTLS()
	return server.Close
}

// dial connects to a port of a pod, whose loopback address is its own.
func (r *Runner) dial(q *http.Request, port string) (net.Conn, error) {
	p := r.find(q.PathValue("namespace"), q.PathValue("pod"))
	if p == nil {
		return nil, fmt.Errorf("pod %s/%s does not run here", q.PathValue("namespace"), q.PathValue("pod"))
	}
	return new(net.Dialer).DialContext(q.Context(), "tcp", net.JoinHostPort(p.ip.String(), port))
}

// find returns a pod, nil for one that does not run here.
func (r *Runner) find(namespace, name string) *pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pods {
		if p.object.Namespace == namespace && p.object.Name == name {
			return p
		}
	}
	return nil
}

// logFile returns where a container's output is kept.
func (r *Runner) logFile(namespace, pod, container string) string {
	return filepath.Join(r.LogDir, fmt.Sprintf("%s_%s_%s.log", filepath.Base(namespace), filepath.Base(pod), filepath.Base(container)))
}
