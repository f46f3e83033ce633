package frames

import (
	"net/http"
	"strconv"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

const (
	windowBytes = membudget.WindowBytes
	// answerWindow is how much of an answer is received that its client does not take. It is a
	// part of membudget.StreamBytes. The app is near, so a small one is no slower.
	answerWindow = 32 << 10
)

// continues asks a client for the body of its request.
var continues = []hpack.HeaderField{field(":status", "100")}

// handle handles a frame of the app.
func (a *app) handle(f http2.Frame) error {
	if _, settings := f.(*http2.SettingsFrame); !a.ready && !settings {
		return protocolError
	}
	switch f := f.(type) {
	case *http2.SettingsFrame:
		return a.settings(f)
	case *http2.MetaHeadersFrame:
		return a.head(f)
	case *http2.DataFrame:
		return a.data(f)
	case *http2.WindowUpdateFrame:
		return a.windowUpdate(f)
	case *http2.RSTStreamFrame:
		if s := a.streams[f.StreamID]; s != nil {
			a.forget(s)
			s.resetByApp(f.ErrCode)
			a.conn.place()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			a.peer.out = appendPing(a.peer.buffer(), http2.FlagPingAck, f.Data)
		} else if a.pinged > 0 {
			a.pong()
		}
	case *http2.GoAwayFrame:
		a.goAway(f)
	case *http2.PushPromiseFrame:
		return protocolError
	}
	return nil
}

func (a *app) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	err := a.peer.apply(f, func(s http2.Setting) error {
		if s.ID == http2.SettingMaxConcurrentStreams {
			a.most = int64(s.Val)
		}
		if s.ID != http2.SettingInitialWindowSize {
			return nil
		}
		return a.peer.resize(s.Val, func(yield func(*half) bool) {
			for _, s := range a.streams {
				if !yield(&s.up) {
					return
				}
			}
		})
	})
	if err != nil {
		return err
	}
	a.peer.out = appendHeader(a.peer.buffer(), 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	if !a.ready {
		a.ready, a.idle = true, a.conn.now()
	}
	a.conn.place()
	return nil
}

func (a *app) windowUpdate(f *http2.WindowUpdateFrame) error {
	if f.StreamID == 0 {
		return a.peer.widen(int64(f.Increment))
	}
	if s := a.streams[f.StreamID]; s != nil {
		if s.up.window += int64(f.Increment); s.up.window > maxWindow {
			return streamError(f.StreamID, http2.ErrCodeFlowControl)
		}
		s.up.pump()
	}
	return nil
}

// goAway has no more requests sent over the connection. Those that the app has not begun go over
// another one.
func (a *app) goAway(f *http2.GoAwayFrame) {
	a.draining = true
	for id, s := range a.streams {
		if id > f.LastStreamID {
			a.forget(s)
			s.lose(true)
		}
	}
	if len(a.streams) == 0 && !a.peer.closed {
		a.close()
	}
	a.conn.place()
}

// head handles the head of an answer, or its trailer.
func (a *app) head(f *http2.MetaHeadersFrame) error {
	a.quiet = false
	s := a.streams[f.StreamID]
	switch {
	case s == nil && f.StreamID >= a.next, s == nil && f.StreamID%2 == 0:
		return protocolError
	case s == nil:
		return nil
	case f.Truncated:
		return streamError(f.StreamID, http2.ErrCodeProtocol)
	case s.begun:
		return s.trailer(f)
	}
	status, err := strconv.Atoi(f.PseudoValue("status"))
	interim := status < http.StatusOK
	if err != nil || status < 100 || status > 999 || status == http.StatusSwitchingProtocols || interim && f.StreamEnded() {
		return streamError(f.StreamID, http2.ErrCodeProtocol)
	}
	fields := Fields{list: make([]hpack.HeaderField, 0, len(f.Fields))}
	for _, one := range f.RegularFields() {
		if !ofConnection(one.Name) {
			fields.list = append(fields.list, one)
		}
	}
	if interim {
		s.conn.client.headers(s.id, withStatus(f, &fields), false)
		return nil
	}
	if s.request.Method != http.MethodHead && status != http.StatusNoContent && status != http.StatusNotModified {
		s.down.declared = lengthOf(fields.Get("content-length"))
	}
	if f.StreamEnded() && !s.down.whole() {
		return streamError(f.StreamID, http2.ErrCodeProtocol)
	}
	s.begun, s.fields, s.kept, a.answered = true, nil, nil, true
	s.exchange.Head(status, &fields)
	if !f.StreamEnded() {
		s.conn.client.headers(s.id, withStatus(f, &fields), false)
		return nil
	}
	s.down.ended = true
	s.down.finish()
	s.conn.client.headers(s.id, withStatus(f, &fields), true)
	s.ended(&s.down)
	return nil
}

func withStatus(f *http2.MetaHeadersFrame, fields *Fields) []hpack.HeaderField {
	return append([]hpack.HeaderField{field(":status", f.PseudoValue("status"))}, fields.all()...)
}

// trailer ends an answer.
func (s *stream) trailer(f *http2.MetaHeadersFrame) error {
	if s.down.ended || !f.StreamEnded() || len(f.PseudoFields()) > 0 || !s.down.whole() {
		return streamError(f.StreamID, http2.ErrCodeProtocol)
	}
	fields := Fields{list: append([]hpack.HeaderField{}, f.RegularFields()...)}
	s.exchange.Trailer(&fields)
	s.down.ended = true
	if s.down.trailer = fields.all(); len(s.down.trailer) == 0 {
		s.down.trailer = nil
	}
	s.down.pump()
	return nil
}

// whole reports whether all of the body has come that was announced.
func (h *half) whole() bool { return h.declared < 0 || h.got == h.declared }

func (a *app) data(f *http2.DataFrame) error {
	a.quiet = false
	if !a.peer.take(int64(f.Length)) {
		return flowError
	}
	s := a.streams[f.StreamID]
	if s == nil {
		a.peer.give(int64(f.Length))
		if f.StreamID >= a.next || f.StreamID%2 == 0 {
			return protocolError
		}
		return nil
	}
	h, data := &s.down, f.Data()
	h.got += int64(len(data))
	switch {
	case !s.begun, h.ended, h.declared >= 0 && h.got > h.declared, s.request.Method == http.MethodHead && len(data) > 0:
		a.peer.give(int64(f.Length))
		return streamError(f.StreamID, http2.ErrCodeProtocol)
	case int64(f.Length) > h.received:
		a.peer.give(int64(f.Length))
		return streamError(f.StreamID, http2.ErrCodeFlowControl)
	}
	h.received -= int64(f.Length)
	h.credit(int64(f.Length) - int64(len(data)))
	if f.StreamEnded() {
		if !h.whole() {
			return streamError(f.StreamID, http2.ErrCodeProtocol)
		}
		h.ended = true
	}
	h.push(data)
	return nil
}

// resetByApp ends an answer. One that is complete is passed on.
func (s *stream) resetByApp(code http2.ErrCode) {
	switch {
	case s.down.ended:
		s.up.drop()
	case !s.begun && code == http2.ErrCodeRefusedStream:
		s.lose(true)
	default:
		s.broken(code)
	}
}

// lose sends a request again that the app has not answered, where that does no harm. safe says
// that the app has not begun it.
func (s *stream) lose(safe bool) {
	again := safe || s.again && s.reused && !s.lost
	switch {
	case s.down.ended:
		s.up.drop()
	case s.begun || !again || s.lost || s.tries == tries:
		s.broken(http2.ErrCodeInternal)
	default:
		s.again = s.again && safe // it is sent once more
		s.up.queue, s.up.again = append(s.kept, s.up.queue...), len(s.kept)+s.up.again
		s.kept, s.up.to, s.up.sent, s.up.waits = nil, nil, false, false
		s.conn.waiting = append(s.conn.waiting, s)
	}
}

// broken answers a request that the app does not answer, or breaks its answer off behind what has
// come of it.
func (s *stream) broken(code http2.ErrCode) {
	if !s.begun {
		s.refuse(exchange.NoAnswer)
		return
	}
	s.up.drop()
	s.down.ended, s.down.broken, s.down.code, s.down.trailer = true, true, code, nil
	s.down.pump()
}
