package dashboard

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
)

//go:embed page
var page embed.FS

// A Source reads objects. It may be asked by one goroutine at a time.
type Source func(ctx context.Context) (*Objects, error)

// Objects are what the page shows. An Error is of what could not be read; the rest is shown.
type Objects struct {
	Cluster  string                     `json:"cluster"` // the context of the kubeconfig
	ReadAt   time.Time                  `json:"readAt"`
	Policies []v1alpha1.RateLimitPolicy `json:"policies"`
	Pools    []v1alpha1.ConcurrencyPool `json:"pools"`
	Budgets  []v1alpha1.FederatedBudget `json:"budgets"`
	Errors   []string                   `json:"errors,omitempty"`
}

// freshFor is how long what was read is shown, however many pages ask.
const freshFor = time.Second

// A Handler serves the page and its objects.
type Handler struct {
	mux    *http.ServeMux
	source Source
	now    func() time.Time

	mu   sync.Mutex
	last *Objects
	read time.Time
}

// New returns a handler of what source reads, below the path /SECRET/. Other programs
// of this machine, and other users, do not know it.
func New(secret string, source Source) *Handler {
	h := &Handler{mux: http.NewServeMux(), source: source, now: time.Now}
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // the name is valid
	}
	below := "/" + secret + "/"
	h.mux.Handle("GET "+below, http.StripPrefix(below, http.FileServerFS(files)))
	h.mux.HandleFunc("GET "+below+"objects", h.objects)
	return h
}

// ServeHTTP refuses requests by other names than those of this machine: the page of another site, whose
// name leads here, could read what it is not to see.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !isLoopback(r.Host) {
		http.Error(w, "use http://localhost or http://127.0.0.1", http.StatusForbidden)
		return
	}
	head := w.Header()
	head.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
	h.mux.ServeHTTP(w, r)
}

func isLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return name == "localhost" || net.ParseIP(name).IsLoopback()
}

func (h *Handler) objects(w http.ResponseWriter, r *http.Request) {
	all, err := h.current(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	text, err := json.Marshal(all)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // an error means that the page is gone
}

// current reads the objects unless they were read just now.
func (h *Handler) current(ctx context.Context) (*Objects, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last != nil && h.now().Sub(h.read) < freshFor {
		return h.last, nil
	}
	all, err := h.source(ctx)
	if err != nil {
		return nil, err
	}
	h.last, h.read = all, h.now()
	return all, nil
}
