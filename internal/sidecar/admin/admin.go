package admin

import (
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A Server is the handler of the admin port, which every pod in the cluster may reach: it
// shows no policy. It is ready from SetReady(true) to SetReady(false).
type Server struct {
	*http.ServeMux
	ready atomic.Bool
}

// New returns a handler that is not ready yet.
func New(metrics prometheus.Gatherer) *Server {
	s := &Server{ServeMux: http.NewServeMux()}
	s.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	s.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok\n") })
	s.HandleFunc("GET /readyz", s.readyz)
	return s
}

// SetReady says whether requests should be sent here. A sidecar is ready when it
// listens: it waits for no controller and no store.
func (s *Server) SetReady(ready bool) { s.ready.Store(ready) }

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	if s.ready.Load() {
		say(w, http.StatusOK, "ok\n")
		return
	}
	say(w, http.StatusServiceUnavailable, "starting or stopping\n")
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // an error means that the client is gone
}
