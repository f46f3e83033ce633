package probe

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
)

// A Handler answers at the path of each target.
type Handler struct {
	token   []byte
	targets map[string]*question // by what follows the token in the path
}

// New returns the handler for the targets of the app at the host. It answers only
// requests that name the token.
func New(app, token string, targets []Target) *Handler {
	h := &Handler{token: []byte(token), targets: map[string]*question{}}
	for _, t := range targets {
		h.targets[t.name()] = &question{put: func(ctx context.Context) error { return ask(ctx, app, &t) }}
	}
	return h
}

// ServeHTTP puts the question and answers 200, or 503 with the cause.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := h.find(r.URL.Path)
	if q == nil {
		http.Error(w, "no probe of this token, container and kind was taken over by the injector", http.StatusNotFound)
		return
	}
	if err := q.ask(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ok") // an error means that the kubelet is gone
}

// find returns the question at the path, or nil. How long that takes reveals nothing
// about the token. To a caller without the token, it reveals nothing about the declared
// targets either.
func (h *Handler) find(path string) *question {
	token, name, _ := strings.Cut(strings.TrimPrefix(path, prefix), "/")
	if len(h.token) == 0 || subtle.ConstantTimeCompare([]byte(token), h.token) != 1 {
		return nil
	}
	return h.targets[name]
}
