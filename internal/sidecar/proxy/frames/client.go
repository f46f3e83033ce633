package frames

import (
	"errors"
	"io"
	"slices"

	"golang.org/x/net/http2"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// read handles what the client sends, to its end.
func (c *conn) read() {
	for {
		f, err := c.client.framer.ReadFrame()
		c.mu.Lock()
		if c.heard, c.pinged = c.now(), 0; err == nil {
			err = c.handle(f)
		}
		done := c.answerTo(f, err)
		if done || c.failed || !c.client.arrived() {
			c.flush()
		}
		c.client.throttle(outBytes)
		for _, a := range c.apps {
			a.peer.throttle(otherBytes)
		}
		c.client.saw(f, len(c.streams) == 0)
		done = done || c.client.closed
		failed := c.failed
		c.mu.Unlock()
		switch {
		case done:
			return
		case failed: // the client is given a moment to read why
			_, _ = io.Copy(io.Discard, c.socket)
			return
		}
	}
}

// answerTo answers an error, and reports whether it is the end.
func (c *conn) answerTo(f http2.Frame, err error) (done bool) {
	var ofStream http2.StreamError
	var ofConn http2.ConnectionError
	switch {
	case err == nil:
	case errors.Is(err, http2.ErrFrameTooLarge):
		c.goAway(http2.ErrCodeFrameSize)
	case errors.As(err, &ofStream):
		if !c.away {
			c.last = max(c.last, ofStream.StreamID)
		}
		if s := c.streams[ofStream.StreamID]; s != nil {
			s.fail(ofStream.Code, exchange.Malformed)
		} else if !c.failed {
			c.reset(ofStream.StreamID, ofStream.Code)
		}
	case errors.As(err, &ofConn):
		if f != nil {
			c.last = max(c.last, f.Header().StreamID)
		}
		c.goAway(http2.ErrCode(ofConn))
	default:
		return true
	}
	return false
}

func streamError(id uint32, code http2.ErrCode) error {
	return http2.StreamError{StreamID: id, Code: code}
}

const (
	protocolError = http2.ConnectionError(http2.ErrCodeProtocol)
	flowError     = http2.ConnectionError(http2.ErrCodeFlowControl)
)

// handle handles a frame.
func (c *conn) handle(f http2.Frame) error {
	_, settings := f.(*http2.SettingsFrame)
	if !c.settled && !settings {
		return protocolError
	}
	c.settled = true
	if c.failed || c.away && f.Header().StreamID > c.last {
		if d, ok := f.(*http2.DataFrame); ok {
			return c.discard(d)
		}
		return nil
	}
	switch f := f.(type) {
	case *http2.SettingsFrame:
		return c.settings(f)
	case *http2.MetaHeadersFrame:
		return c.head(f)
	case *http2.WindowUpdateFrame:
		return c.windowUpdate(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			c.client.out = appendPing(c.client.buffer(), http2.FlagPingAck, f.Data)
		}
	case *http2.DataFrame:
		return c.data(f)
	case *http2.RSTStreamFrame:
		return c.resetBy(f)
	case *http2.PriorityFrame:
		if f.StreamID == f.StreamDep {
			return streamError(f.StreamID, http2.ErrCodeProtocol)
		}
	case *http2.GoAwayFrame:
		c.goAway(http2.ErrCodeNo)
	case *http2.PushPromiseFrame:
		return protocolError
	}
	return nil
}

// isIdle reports whether a stream was never opened.
func (c *conn) isIdle(id uint32) bool { return id%2 == 0 || id > c.last }

func (c *conn) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		if c.client.unacked--; c.client.unacked < 0 {
			return protocolError
		}
		return nil
	}
	if err := c.client.apply(f, func(s http2.Setting) error {
		if s.ID == http2.SettingInitialWindowSize {
			return c.client.resize(s.Val, func(yield func(*half) bool) {
				for _, s := range c.streams {
					if !yield(&s.down) {
						return
					}
				}
			})
		}
		return nil
	}); err != nil {
		return err
	}
	c.client.out = appendHeader(c.client.buffer(), 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	return nil
}

func (c *conn) windowUpdate(f *http2.WindowUpdateFrame) error {
	if f.StreamID == 0 {
		return c.client.widen(int64(f.Increment))
	}
	if c.isIdle(f.StreamID) {
		return protocolError
	}
	s := c.streams[f.StreamID]
	if s == nil {
		return nil
	}
	if s.down.window += int64(f.Increment); s.down.window > maxWindow {
		return streamError(f.StreamID, http2.ErrCodeFlowControl)
	}
	s.down.pump()
	return nil
}

func (c *conn) resetBy(f *http2.RSTStreamFrame) error {
	if c.isIdle(f.StreamID) {
		return protocolError
	}
	if s := c.streams[f.StreamID]; s != nil {
		s.finish(exchange.Left)
		s.leave(f.ErrCode)
		c.close(s)
	}
	return nil
}

// discard gives back the window of data that no stream is for.
func (c *conn) discard(f *http2.DataFrame) error {
	if !c.client.take(int64(f.Length)) {
		return streamError(f.StreamID, http2.ErrCodeFlowControl)
	}
	c.client.give(int64(f.Length))
	return nil
}

func (c *conn) data(f *http2.DataFrame) error {
	if c.isIdle(f.StreamID) {
		return protocolError
	}
	s := c.streams[f.StreamID]
	if s == nil || s.up.ended {
		if err := c.discard(f); err != nil || s == nil && slices.Contains(c.resets[:], f.StreamID) {
			return err
		}
		return streamError(f.StreamID, http2.ErrCodeStreamClosed)
	}
	h, data := &s.up, f.Data()
	if h.got += int64(len(data)); h.declared >= 0 && h.got > h.declared {
		if err := c.discard(f); err != nil {
			return err
		}
		return streamError(f.StreamID, http2.ErrCodeProtocol)
	}
	if int64(f.Length) > h.received || !c.client.take(int64(f.Length)) {
		return streamError(f.StreamID, http2.ErrCodeFlowControl)
	}
	h.received -= int64(f.Length)
	h.credit(int64(f.Length) - int64(len(data)))
	if h.sent { // the answer is the sidecar's own
		c.client.give(int64(len(data)))
		h.ended = f.StreamEnded()
		return nil
	}
	if h.ended = f.StreamEnded(); h.ended && !h.whole() {
		s.malformed()
		return nil
	}
	if s.call != nil {
		s.receive(data)
		return nil
	}
	h.push(data)
	return nil
}
