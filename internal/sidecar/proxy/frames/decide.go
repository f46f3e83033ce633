package frames

import (
	"golang.org/x/net/http2"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// begin has a request decided.
func (c *conn) begin(s *stream, truncated bool) {
	if truncated {
		w := new(exchange.Recorder)
		tooLarge(w)
		s.answer(w)
		return
	}
	taken, ok := c.memory.Admit(s.request)
	if !ok {
		w := new(exchange.Recorder)
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
	var w exchange.Recorder
	x, aborted := exchange.Enter(s.handler, &w, s.request, s.conn.server.cfg.Log)
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	s.deciding = false
	switch {
	case s.over:
		c.lingering--
		s.taken.Done()
		if x != nil {
			x.End(exchange.Left)
		}
		return
	case aborted:
		s.fail(http2.ErrCodeInternal, exchange.Left)
	case x == nil:
		s.answer(&w)
	default:
		s.exchange = x
		s.forward()
	}
	c.flush()
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
	s.again = exchange.Repeats(s.request)
	if !s.exchange.Forward(s.cut) {
		s.refuse(exchange.Cut)
		return
	}
	s.conn.waiting = append(s.conn.waiting, s)
	s.conn.place()
}
