package frames

import (
	"context"
	"net/http"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// tries is how often a request is sent that the app has not begun.
const tries = 3

// A stream is a request and its answer.
type stream struct {
	id      uint32
	conn    *conn
	request *http.Request
	call    *call              // nil of a request for an app
	cancel  context.CancelFunc // the decision; nil of a call that does not wait
	taken   membudget.Request
	handler exchange.Handler
	asks    bool // whether to send the body

	deciding bool
	exchange exchange.Exchange
	over     bool // the client has its answer, or does not want one

	app    *app // nil where it is not at the app
	appID  uint32
	fields []hpack.HeaderField // for the app
	again  bool                // it may be sent again though the app may have begun
	reused bool                // the connection to the app had answered others before
	tries  int
	kept   []byte // of the body, what was sent
	lost   bool   // more was sent than is kept
	begun  bool   // the answer
	own    bool   // the answer is the sidecar's

	up, down half // the request, and the answer
}

// passed is called with each part that was passed on.
func (s *stream) passed(h *half, p []byte) {
	switch {
	case h == &s.down:
		if s.exchange != nil && !s.own {
			s.exchange.Data(p)
		}
	case s.lost || s.begun:
	case len(s.kept)+len(p) > exchange.KeptBytes:
		s.lost, s.kept = true, nil
	default:
		s.kept = append(s.kept, p...)
	}
}

// ending is called when the end of a half is about to be sent.
func (s *stream) ending(h *half) {
	if h == &s.down && !s.own {
		s.finish(exchange.Complete)
	}
}

// ended is called when the end of a half was sent. The rest of a request is of no use behind its
// answer.
func (s *stream) ended(h *half) {
	if h != &s.down {
		return
	}
	if !s.up.ended {
		s.conn.reset(s.id, http2.ErrCodeNo)
	}
	s.leave(http2.ErrCodeNo)
	s.conn.close(s)
}

// finish ends the exchange, if that has not been.
func (s *stream) finish(why exchange.Ending) {
	if x := s.exchange; x != nil {
		s.exchange = nil
		x.End(why)
	}
}

// leave ends the stream at the app, if it has not ended there.
func (s *stream) leave(code http2.ErrCode) {
	a := s.app
	if a == nil {
		return
	}
	if !s.up.sent || !s.down.ended {
		a.reset(s.appID, code)
	}
	a.forget(s)
	s.up.drop()
	s.conn.place()
}

// fail ends a stream whose answer has begun, or that gets none.
func (s *stream) fail(code http2.ErrCode, why exchange.Ending) {
	s.finish(why)
	s.leave(http2.ErrCodeCancel)
	s.conn.reset(s.id, code)
	s.conn.close(s)
}

// refuse answers a request that ends without an answer of the app, or breaks off the one that has
// begun.
func (s *stream) refuse(why exchange.Ending) {
	if s.begun || s.exchange == nil {
		s.fail(http2.ErrCodeInternal, why)
		return
	}
	w := new(exchange.Recorder)
	s.exchange.Refuse(w, why)
	s.finish(why)
	s.leave(http2.ErrCodeCancel)
	s.answer(w)
}

// answer sends an answer of the sidecar's own.
func (s *stream) answer(w *exchange.Recorder) {
	s.begun, s.own = true, true
	s.up.drop()
	s.down.from = nil
	s.down.ended, s.down.trailer = true, nil
	client := s.conn.client
	fields := fieldsOf(w)
	if len(w.Body) == 0 || s.request.Method == http.MethodHead {
		s.down.sent = true
		client.headers(s.id, fields, true)
		s.ended(&s.down)
		return
	}
	client.headers(s.id, fields, false)
	s.down.push(w.Body)
}

// cut ends a request; see Exchange.Forward.
func (s *stream) cut() {
	c := s.conn
	c.mu.Lock()
	if !s.over && s.exchange != nil {
		s.refuse(exchange.Cut)
	}
	c.flush()
	c.mu.Unlock()
}
