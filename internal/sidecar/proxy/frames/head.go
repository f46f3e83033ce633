package frames

import (
	"context"
	"io"
	"net/http"
	"slices"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// malformed ends a request whose body is not what its head says.
func (s *stream) malformed() {
	if s.exchange != nil {
		s.refuse(exchange.Malformed)
	} else {
		s.fail(http2.ErrCodeProtocol, exchange.Malformed)
	}
}

// head begins a stream, or ends what a client sends over one.
func (c *conn) head(f *http2.MetaHeadersFrame) error {
	if f.StreamID%2 == 0 {
		return protocolError
	}
	if s := c.streams[f.StreamID]; s != nil {
		return s.trailers(f)
	}
	if f.StreamID <= c.last {
		if slices.Contains(c.resets[:], f.StreamID) {
			return nil
		}
		return protocolError
	}
	c.last = f.StreamID
	if len(c.streams) >= maxStreams {
		if c.client.unacked == 0 {
			return streamError(f.StreamID, http2.ErrCodeProtocol)
		}
		return streamError(f.StreamID, http2.ErrCodeRefusedStream)
	}
	if len(c.streams)+c.lingering >= maxStreams {
		if c.refused++; c.refused > maxRefused {
			return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
		}
		return streamError(f.StreamID, http2.ErrCodeRefusedStream)
	}
	c.refused = 0
	if f.HasPriority() && f.Priority.StreamDep == f.StreamID {
		return streamError(f.StreamID, http2.ErrCodeProtocol)
	}
	if c.server.cfg.Calls != nil {
		return c.beginCall(f)
	}
	ctx, cancel := context.WithCancel(c.ctx)
	r, asks := newRequest(ctx, f, c.remote)
	if r == nil {
		cancel()
		return streamError(f.StreamID, http2.ErrCodeProtocol)
	}
	s := c.newStream(f)
	s.request, s.cancel, s.handler, s.asks = r, cancel, c.server.cfg.Handler, asks
	if length := r.Header["Content-Length"]; r.ContentLength > 0 || len(length) > 0 && r.ContentLength == 0 && lengthOf(length[0]) == 0 {
		s.up.declared = r.ContentLength
	}
	if s.up.ended {
		s.up.declared = -1
	}
	c.enter(s)
	c.begin(s, f.Truncated)
	return nil
}

// newStream returns the stream that a head begins.
func (c *conn) newStream(f *http2.MetaHeadersFrame) *stream {
	s := &stream{id: f.StreamID, conn: c}
	s.up = half{
		stream: s, from: c.client, fromID: s.id, received: windowBytes, declared: -1, ended: f.StreamEnded(),
	}
	s.down = half{stream: s, to: c.client, toID: s.id, window: c.client.initial, declared: -1}
	return s
}

// enter makes a stream one of those that are open.
func (c *conn) enter(s *stream) {
	c.streams[s.id] = s
	if len(c.streams) == 1 {
		c.memory.Active() // one that was closed meanwhile ends by itself
	}
}

// trailers ends the request.
func (s *stream) trailers(f *http2.MetaHeadersFrame) error {
	if s.up.ended {
		return streamError(s.id, http2.ErrCodeStreamClosed)
	}
	if !f.StreamEnded() || len(f.PseudoFields()) > 0 {
		return streamError(s.id, http2.ErrCodeProtocol)
	}
	fields := Fields{list: slices.Clone(f.RegularFields())}
	for _, one := range fields.list {
		if !httpguts.ValidTrailerHeader(http.CanonicalHeaderKey(one.Name)) {
			return streamError(s.id, http2.ErrCodeProtocol)
		}
	}
	s.up.ended = true
	if !s.up.whole() {
		s.malformed()
		return nil
	}
	if s.up.sent {
		return nil
	}
	if s.call != nil {
		s.complete(s.call.message)
		return nil
	}
	s.up.trailer = fields.list
	if !s.deciding { // else the request is not to be looked at
		s.cleanTrailer()
		s.up.pump()
	}
	return nil
}

// cleanTrailer removes from the trailer of the request what does not pass.
func (s *stream) cleanTrailer() {
	fields := Fields{list: s.up.trailer}
	s.handler.Trailer(s.request, fields.Header())
	if s.up.trailer = fields.all(); len(s.up.trailer) == 0 {
		s.up.trailer = nil
	}
}

// tooLarge answers as net/http does.
func tooLarge(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(http.StatusRequestHeaderFieldsTooLarge)
	_, _ = io.WriteString(w, "<h1>HTTP Error 431</h1><p>Request Header Field(s) Too Large</p>")
}
