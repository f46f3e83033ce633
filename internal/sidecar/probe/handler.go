package probe

import (
	"context"
	"fmt"
	"net/http"
)

// A Handler answers at the path of each target.
type Handler struct{ targets map[string]*question }

// New returns the handler for the targets of the app at the host.
func New(app string, targets []Target) *Handler {
	h := &Handler{targets: map[string]*question{}}
	for _, t := range targets {
		h.targets[t.Path()] = &question{put: func(ctx context.Context) error { return ask(ctx, app, &t) }}
	}
	return h
}

// ServeHTTP puts the question and answers 200, or 503 with the cause.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q, ok := h.targets[r.URL.Path]
	if !ok {
		http.Error(w, "no probe of this container and kind was taken over by the injector", http.StatusNotFound)
		return
	}
	if err := q.ask(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ok") // nobody is left to tell when the kubelet is gone
}
