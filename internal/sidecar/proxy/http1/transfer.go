package http1

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// A transfer is a request that is in flight, up to the end of its answer. It is the context of
// the request.
type transfer struct {
	conn    *conn
	r       *http.Request
	url     url.URL
	text    string // of the head
	target  string // as the app is asked for it
	handler exchange.Exchange
	body    body

	expects bool // the client waits until it is asked for the body
	slow    bool // the app has taken longer than patience
	tried   bool // the request was sent once more
	room    bool // memory is taken for a roomy connection
	width   bool // the same for a wide one of the client's
	head    answerHead

	mu       sync.Mutex
	over     bool
	why      exchange.Ending
	done     chan struct{} // closed when it is over; nil until something asks for it
	patience *time.Timer   // until the client is watched; nil while nothing asks for done
	waits    bool          // nothing reads from the client
	link     *link         // to the app
	watch    *watch        // nil while the client is not watched
	upload   *upload       // nil until the body is sent on
}

// aborted is why a request ends that the sidecar has no time for. It is not answered.
const aborted = exchange.Ending(-1)

var _ context.Context = (*transfer)(nil)

// Deadline implements context.Context.
func (t *transfer) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context. From then on it is seen that the client leaves, which may
// take some milliseconds.
func (t *transfer) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		t.done = make(chan struct{})
		if t.over {
			close(t.done)
		} else {
			t.patience = time.AfterFunc(patience, t.look)
		}
	}
	return t.done
}

// Err implements context.Context.
func (t *transfer) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return context.Canceled
	}
	return nil
}

// Value implements context.Context.
func (t *transfer) Value(any) any { return nil }

// cancel ends the request, unless it has ended. It may be called by any goroutine.
func (t *transfer) cancel(why exchange.Ending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	t.over, t.why = true, why
	if t.done != nil {
		close(t.done)
	}
	if t.patience != nil {
		t.patience.Stop()
	}
	if t.link != nil {
		_ = t.link.conn.Close()
	}
}

// ended returns why the request was ended.
func (t *transfer) ended() (why exchange.Ending, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why, t.over
}

// transfer handles the request whose head was read, and reports whether the connection goes on.
func (c *conn) transfer() (goesOn bool) {
	t := &transfer{conn: c, waits: true}
	c.out.reset()
	c.present.Store(t)
	defer t.finish()
	if !t.request() { // nothing can watch the client yet
		c.malformed()
		c.turnAway(badRequest)
		return false
	}
	if c.server.ctx.Err() != nil {
		return false
	}
	taken, ok := c.memory.Admit(t.r)
	if !ok {
		var w exchange.Recorder
		c.server.cfg.NoMemory(&w, t.r)
		return t.answer(&w)
	}
	defer taken.Done()
	if c.wide {
		t.widen()
	}
	var w exchange.Recorder
	x, failed := exchange.Enter(c.server.cfg.Handler, &w, t.r, c.server.cfg.Log)
	t.unwatch()
	_, gone := t.ended()
	switch {
	case x == nil && !failed && !gone:
		return t.answer(&w)
	case x == nil:
		return false
	}
	t.handler = x
	if gone {
		t.end(exchange.Left)
		return false
	}
	return t.forward()
}

// end ends the exchange, if that has not been.
func (t *transfer) end(why exchange.Ending) {
	if x := t.handler; x != nil {
		t.handler = nil
		if why == aborted {
			why = exchange.Left
		}
		x.End(why)
	}
}

// finish ends all that goes on for the request.
func (t *transfer) finish() {
	t.cancel(exchange.Complete)
	t.stopUpload()
	t.unwatch()
	t.end(exchange.Left)
	t.giveRoom()
	t.narrow()
	t.conn.present.Store(nil)
}
