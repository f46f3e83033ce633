package admin

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/policy"
)

// A Source is what /debug/config shows.
type Source interface {
	Set() (set *policy.Set, version string)
	Limits() []enforce.LimitState
	Pool() *pools.State  // nil when none is in force
	Fleet() *fleet.State // nil when no controller is configured
}

// A Server is the handler of the admin port. It is ready from SetReady(true) to
// SetReady(false).
type Server struct {
	*http.ServeMux
	mode   enforce.Mode
	source Source
	ready  atomic.Bool
}

// New returns a handler that is not ready yet.
func New(mode enforce.Mode, source Source, metrics prometheus.Gatherer) *Server {
	s := &Server{ServeMux: http.NewServeMux(), mode: mode, source: source}
	s.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	s.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok\n") })
	s.HandleFunc("GET /readyz", s.readyz)
	s.HandleFunc("GET /debug/config", s.config)
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

// config is the body of /debug/config.
type config struct {
	Mode     enforce.Mode    `json:"mode"`
	Version  string          `json:"version,omitempty"`
	Fleet    *fleet.State    `json:"fleet,omitempty"`
	Pool     *poolState      `json:"pool,omitempty"`
	Limits   []limitState    `json:"limits"`
	Snapshot policy.Snapshot `json:"snapshot"`
}

type limitState struct {
	Namespace       string     `json:"namespace"`
	Policy          string     `json:"policy"`
	Limit           string     `json:"limit"`
	Algorithm       string     `json:"algorithm"`
	Consistency     string     `json:"consistency"`
	Shadow          bool       `json:"shadow"`
	Budget          string     `json:"budget,omitempty"`
	ActiveKeys      int        `json:"activeKeys"`
	StoreRoundTrips int64      `json:"storeRoundTrips"`
	StoreAwaySince  *time.Time `json:"storeAwaySince,omitempty"`
	StoreError      string     `json:"storeError,omitempty"`
}

func (s *Server) config(w http.ResponseWriter, _ *http.Request) {
	set, version := s.source.Set()
	c := config{
		Mode: s.mode, Version: version, Fleet: s.source.Fleet(), Snapshot: set.Snapshot,
		Pool: poolStateOf(s.source.Pool()), Limits: []limitState{},
	}
	for _, l := range s.source.Limits() {
		state := limitState{
			Namespace: l.Namespace, Policy: l.Policy, Limit: l.Limit,
			Algorithm: string(l.Algorithm), Consistency: string(l.Consistency), Shadow: l.Mode == policy.Shadow,
			Budget:     l.Budget,
			ActiveKeys: l.Stats.ActiveKeys, StoreRoundTrips: l.Stats.RoundTrips,
		}
		if l.Stats.CutOff != nil {
			state.StoreAwaySince, state.StoreError = &l.Stats.CutOffSince, l.Stats.CutOff.Error()
		}
		c.Limits = append(c.Limits, state)
	}
	body, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		say(w, http.StatusInternalServerError, "the configuration cannot be shown\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // nobody is left to tell when the client is gone
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // nobody is left to tell when the client is gone
}
