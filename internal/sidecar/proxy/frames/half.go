package frames

import (
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// A half is one direction of a stream.
type half struct {
	stream *stream
	// from is where it comes from and to where it goes; nil while there is none.
	from, to       *peer
	fromID, toID   uint32
	queue          []byte // received and not passed on
	again          int    // bytes at its beginning that were passed on before
	received, owed int64  // see peer
	window         int64  // that to still takes
	declared, got  int64  // bytes of the body; declared is -1 where it is not

	ended   bool // all of it was received
	sent    bool // all of it was passed on
	waits   bool // in to.ready
	trailer []hpack.HeaderField
	broken  bool // it ends by a reset with code
	code    http2.ErrCode
}

// credit lets the sender send n bytes more, which were passed on or dropped.
func (h *half) credit(n int64) {
	if h.from == nil || n == 0 {
		return
	}
	h.from.give(n)
	if h.ended || h.from.closed {
		return
	}
	if h.owed += n; h.owed >= refund || h.owed >= h.received {
		h.from.out = appendWindowUpdate(h.from.buffer(), h.fromID, h.owed)
		h.received += h.owed
		h.owed = 0
	}
}

// push passes on what was received, or keeps it. The sender has room for what it passes on.
func (h *half) push(p []byte) {
	for len(h.queue) == 0 && len(p) > 0 && h.mayData() {
		n := h.chunk(len(p))
		h.data(p[:n], h.ended && n == len(p))
		p = p[n:]
	}
	if len(p) > 0 {
		h.queue = append(h.queue, p...)
	}
	h.pump()
}

// pump passes on a frame of what is kept, or the end, if that may be. Where more could be sent
// but for others, it waits for its turn.
func (h *half) pump() {
	if h.to == nil || h.sent || h.waits {
		return
	}
	switch {
	case len(h.queue) == 0:
		if h.ended {
			h.end()
		}
		return
	case h.mayData():
		n := h.chunk(len(h.queue))
		part := h.queue[:n]
		if h.queue = h.queue[n:]; len(h.queue) == 0 {
			h.queue = nil
		}
		h.data(part, h.ended && h.queue == nil)
		if h.pending() {
			h.wait()
		}
	case h.window > 0:
		h.wait()
	}
}

// pending reports whether there is something that may be sent in this half's next turn.
func (h *half) pending() bool {
	return !h.sent && (len(h.queue) > 0 && h.window > 0 || len(h.queue) == 0 && h.ended)
}

func (h *half) wait() {
	h.waits = true
	h.to.ready = append(h.to.ready, h)
}

func (h *half) mayData() bool {
	return h.to != nil && h.window > 0 && h.to.window > 0 && len(h.to.out) < outBytes
}

func (h *half) chunk(n int) int {
	return int(min(int64(n), h.window, h.to.window, int64(h.to.frame), frameBytes))
}

// data passes on a part, and with the last one the end where no trailer follows.
func (h *half) data(p []byte, last bool) {
	flags := http2.Flags(0)
	if last && h.trailer == nil && !h.broken {
		flags = http2.FlagDataEndStream
		h.finish()
	}
	to := h.to
	to.out = append(appendHeader(to.buffer(), len(p), http2.FrameData, flags, h.toID), p...)
	to.window -= int64(len(p))
	h.window -= int64(len(p))
	h.stream.passed(h, p)
	before := min(h.again, len(p))
	h.again -= before
	h.credit(int64(len(p) - before))
	switch {
	case flags != 0:
		h.stream.ended(h)
	case last:
		h.end()
	}
}

// end passes on the end.
func (h *half) end() {
	if h.broken {
		h.sent = true
		h.stream.fail(h.code, exchange.Broken)
		return
	}
	h.finish()
	if h.trailer != nil {
		h.to.headers(h.toID, h.trailer, true)
	} else {
		h.to.out = appendHeader(h.to.buffer(), 0, http2.FrameData, http2.FlagDataEndStream, h.toID)
	}
	h.stream.ended(h)
}

// finish says that the end is about to be sent. Its effects, such as a slot that is free
// again, are there before.
func (h *half) finish() {
	h.sent = true
	h.stream.ending(h)
}

// drop gives up what is kept. The sender is not to send more of this, but others may.
func (h *half) drop() {
	if h.from != nil && len(h.queue) > 0 {
		h.from.give(int64(len(h.queue) - h.again))
	}
	h.queue, h.again, h.to, h.sent = nil, 0, nil, true
}
