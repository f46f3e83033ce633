package frames

import (
	"errors"
	"net/http"
	"runtime/debug"

	"golang.org/x/net/http2"
)

// begin has a request decided.
func (c *conn) begin(s *stream, truncated bool) {
	if truncated {
		w := new(recorder)
		tooLarge(w)
		s.answer(w)
		return
	}
	taken, ok := c.memory.Admit(s.request)
	if !ok {
		w := new(recorder)
		c.server.cfg.NoMemory(w, s.request)
		s.answer(w)
		return
	}
	if s.taken = taken; c.server.leaving.Load() {
		c.goAway(http2.ErrCodeNo)
	}
	s.deciding = true
	c.running.Go(s.decide)
}

// decide decides about a request, and sends it to the app or answers it.
func (s *stream) decide() {
	var w recorder
	x, aborted := s.enter(&w)
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	s.deciding = false
	switch {
	case s.over:
		c.lingering--
		s.taken.Done()
		if x != nil {
			x.End(Left)
		}
		return
	case aborted:
		s.fail(http2.ErrCodeInternal, Left)
	case x == nil:
		s.answer(&w)
	default:
		s.exchange = x
		s.forward()
	}
	c.flush()
}

// enter asks the handler.
func (s *stream) enter(w http.ResponseWriter) (x Exchange, aborted bool) {
	defer func() {
		reason := recover()
		if aborted = reason != nil; !aborted {
			return
		}
		if err, ok := reason.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			s.conn.server.cfg.Log.Error("a request panicked", "panic", reason, "stack", string(debug.Stack()))
		}
	}()
	return s.handler.Enter(w, s.request), false
}

// forward sends a request to the app.
func (s *stream) forward() {
	if s.asks && !s.up.ended {
		s.conn.client.headers(s.id, continues, false)
	}
	if s.up.trailer != nil {
		s.cleanTrailer()
	}
	s.fields = forApp(s.request, s.up.ended && len(s.up.queue) == 0 && s.up.got == 0)
	s.again = replayable(s.request)
	if !s.exchange.Forward(s.cut) {
		s.refuse(Cut)
		return
	}
	s.conn.waiting = append(s.conn.waiting, s)
	s.conn.place()
}

// replayable reports whether a request does no harm twice.
func replayable(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return r.Header["Idempotency-Key"] != nil || r.Header["X-Idempotency-Key"] != nil
}
