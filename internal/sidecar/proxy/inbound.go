package proxy

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync/atomic"
	"time"
)

// An inbound is the body of a request over HTTP/1.1 that may be answered while it is read.
type inbound struct {
	io.ReadCloser
	turn chan struct{} // holds one while somebody reads
	over atomic.Bool
	last atomic.Bool           // the connection ends with the answer
	read atomic.Bool           // to its end
	stop func(time.Time) error // has a read end then

	// For a client that waits until it is asked for the body; nil for others. It holds one from
	// when a "100 Continue" of the app comes until that is passed on.
	asking chan struct{}
	asked  bool // by net/http, which sends one of its own when the body is read
	held   bool // asking, by the app's answer
	twice  bool // that answer is the second one, and not passed on
}

func newInbound(body io.ReadCloser, w http.ResponseWriter) *inbound {
	return &inbound{ReadCloser: body, turn: make(chan struct{}, 1), stop: http.NewResponseController(w).SetReadDeadline}
}

// continues returns r so that its client is asked for the body once, by the app's "100 Continue"
// or, when that does not come in time, by net/http. An http.Transport begins to read the body
// before it passes that answer on, so the read waits for it.
func (i *inbound) continues(r *http.Request) *http.Request {
	if r.Header["Expect"] == nil {
		return r
	}
	i.asking = make(chan struct{}, 1)
	return r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		Got100Continue: func() {
			i.asking <- struct{}{}
			i.held, i.twice = true, i.asked
		},
		Got1xxResponse: func(int, textproto.MIMEHeader) error { // after that of httputil.ReverseProxy
			if i.held {
				i.held = false
				<-i.asking
			}
			return nil
		},
	}))
}

// interrupt ends a read. One that came to the end must not be: net/http reads on then, to learn
// whether the client leaves.
func (i *inbound) interrupt() {
	if !i.read.Load() && !i.over.Load() {
		_ = i.stop(time.Now()) // an error has ended the read already
	}
}

// Read implements io.Reader.
func (i *inbound) Read(p []byte) (int, error) {
	if i.asking != nil {
		i.asking <- struct{}{}
		i.asked = true
		<-i.asking
	}
	i.turn <- struct{}{}
	defer func() { <-i.turn }()
	if i.over.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := i.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		i.read.Store(true)
	}
	return n, err
}

// Close implements io.Closer. The way to the app needs nothing more of the body. net/http would
// read the rest here, for as long as the client takes to send it.
func (i *inbound) Close() error {
	i.over.Store(true)
	return nil
}

// finish says that the request was answered, or that its answer was broken off. net/http
// interrupts a read that goes on when a
// handler returns, and then takes the connection for broken: what the client still sends
// would reset it, and with it the answer. So no read may go on, unless the client sends
// nothing that the read could end with. Behind an answer that was broken off net/http reads on
// before it closes the connection: what has come, and no more.
func (i *inbound) finish(broken bool) {
	i.over.Store(true)
	if broken && i.stop(time.Now().Add(lastRead)) == nil {
		i.turn <- struct{}{} // a read that goes on would have net/http take the deadline back
		<-i.turn
		return
	}
	late := time.NewTimer(lastRead)
	defer late.Stop()
	select {
	case i.turn <- struct{}{}:
		<-i.turn
	case <-late.C:
		// Else net/http panics when it looks for the next request meanwhile.
		if i.last.Load() && i.stop(time.Now()) == nil {
			i.turn <- struct{}{}
			<-i.turn
		}
	}
}
