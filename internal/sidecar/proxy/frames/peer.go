package frames

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/weir-dev/weir/internal/sidecar/proxy/socket"
)

const (
	// outBytes is how much waits to be written before no more data is added.
	outBytes = 16 << 10
	// otherBytes is how much waits to be written to one end before the other is not read from. It
	// is more than windows leave, so it bounds frames that have none.
	otherBytes = 256 << 10
	// readBytes is the size of the buffer that frames are read through.
	readBytes   = 4 << 10
	tableBytes  = 4 << 10
	firstWindow = 65535 // RFC 9113, section 6.9.2
	maxWindow   = 1<<31 - 1
	// refund is how much was passed on before its sender is sent leave for more.
	refund = 8 << 10
)

// A peer is one end of a connection, the client or the app, as the sidecar sees it. The mutex of
// the client's connection guards it.
type peer struct {
	conn    net.Conn // nil before it is open
	io      socket.IO
	in      *bufio.Reader
	framer  *http2.Framer
	decoder *hpack.Decoder
	most    uint32 // bytes of a header
	large   bool   // the framer has read a large frame
	closed  bool

	out     []byte // to be written
	writing bool
	room    sync.Cond // out became shorter, or the peer is closed
	moved   time.Time // the deadline of writes
	ready   []*half   // that have something to send, and wait for room or the window

	encoder *hpack.Encoder
	block   bytes.Buffer

	window   int64 // that may be sent
	initial  int64 // window of a stream
	frame    int   // bytes of a frame
	unacked  int   // settings
	received int64 // that may still be received
	owed     int64 // that was passed on and not said yet
}

func newPeer(mu *sync.Mutex) *peer {
	p := &peer{window: firstWindow, initial: firstWindow, received: firstWindow, frame: frameBytes}
	p.room.L = mu
	p.encoder = hpack.NewEncoder(&p.block)
	p.encoder.SetMaxDynamicTableSizeLimit(tableBytes)
	return p
}

// open begins with a connection, from which rest was read already. headers bounds what a header
// block comes to.
func (p *peer) open(conn net.Conn, rest []byte, headers uint32) {
	p.conn = conn
	p.io.Use(conn)
	p.in = bufio.NewReaderSize(&p.io, readBytes)
	if len(rest) > 0 {
		p.in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(rest), &p.io), readBytes)
	}
	p.decoder, p.most = hpack.NewDecoder(tableBytes, nil), headers
	p.renew()
}

// renew gives back the buffer of the framer, which is as large as the largest frame that came. It
// is called between two frames.
func (p *peer) renew() {
	p.framer = http2.NewFramer(nil, p.in)
	p.framer.SetReuseFrames()
	p.framer.SetMaxReadFrameSize(frameBytes)
	p.framer.MaxHeaderListSize = p.most
	p.framer.ReadMetaHeaders = p.decoder
	p.large = false
}

// saw notes what came, and renews the framer where the connection is idle.
func (p *peer) saw(f http2.Frame, idle bool) {
	p.large = p.large || f != nil && f.Header().Length > readBytes
	if p.large && idle {
		p.renew()
	}
}

// headers adds a header block. The fields are in lower case.
func (p *peer) headers(stream uint32, fields []hpack.HeaderField, ends bool) {
	p.block.Reset()
	for _, f := range fields {
		_ = p.encoder.WriteField(f) // a buffer does not fail
	}
	p.out = appendBlock(p.buffer(), stream, p.block.Bytes(), min(p.frame, frameBytes), ends)
	if p.block.Cap() > frameBytes {
		p.block = bytes.Buffer{}
	}
}

// buffer returns out, with room.
func (p *peer) buffer() []byte {
	if p.out == nil {
		p.out = buffers.Get().(*[bufferBytes]byte)[:0] //nolint:forcetypeassert // nothing else is in there
	}
	return p.out
}

const bufferBytes = outBytes + frameBytes

var buffers = sync.Pool{New: func() any { return new([bufferBytes]byte) }}

func release(b []byte) {
	if cap(b) == bufferBytes {
		buffers.Put((*[bufferBytes]byte)(b[:bufferBytes]))
	}
}

// flush writes what is there, and what is added meanwhile; see wants. The caller holds the mutex,
// which is free while the peer takes it.
func (p *peer) flush() (err error) {
	p.writing = true
	for p.refill(); len(p.out) > 0 && err == nil && !p.closed; p.refill() {
		b := p.out
		p.out = nil
		p.room.Broadcast()
		p.room.L.Unlock()
		err = p.write(b)
		release(b)
		p.room.L.Lock()
	}
	p.writing = false
	p.room.Broadcast()
	return err
}

// wants reports whether there is something to write, and nobody does.
func (p *peer) wants() bool {
	return !p.writing && !p.closed && p.conn != nil && (len(p.out) > 0 || len(p.ready) > 0 && p.window > 0)
}

// refill adds data of the streams that wait for room, a frame of each in turn.
func (p *peer) refill() {
	for len(p.ready) > 0 && len(p.out) < outBytes && p.window > 0 {
		h := p.ready[0]
		p.ready = p.ready[1:]
		h.waits = false
		h.pump()
	}
	if len(p.ready) == 0 {
		p.ready = nil
	}
}

// write fails when the peer takes nothing for stalledTime. One that reads slowly stays.
func (p *peer) write(b []byte) error {
	for {
		if now := time.Now(); now.Sub(p.moved) > time.Second {
			p.moved = now
			if err := p.conn.SetWriteDeadline(now.Add(stalledTime + time.Second)); err != nil {
				return err //nolint:wrapcheck // of the connection
			}
		}
		n, err := p.io.Write(b)
		if b = b[n:]; n == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err //nolint:wrapcheck // of the connection
		}
		p.moved = time.Time{}
	}
}

// throttle waits while the peer takes nothing and more than that many bytes wait for it, so that what
// has them sent is not read from.
func (p *peer) throttle(most int) {
	for len(p.out) > most && p.writing && !p.closed {
		p.room.Wait()
	}
}

// take counts n bytes that were received, and reports whether the peer may send them.
func (p *peer) take(n int64) bool {
	if n > p.received {
		return false
	}
	p.received -= n
	return true
}

// give lets the peer send n bytes more.
func (p *peer) give(n int64) {
	if p.closed {
		return
	}
	if p.owed += n; p.owed >= refund || p.owed >= p.received {
		if p.owed > 0 {
			p.out = appendWindowUpdate(p.buffer(), 0, p.owed)
		}
		p.received += p.owed
		p.owed = 0
	}
}

// arrived reports whether a whole frame has been read ahead.
func (p *peer) arrived() bool {
	n := p.in.Buffered()
	if n < frameHeader {
		return false
	}
	head, err := p.in.Peek(frameHeader)
	return err == nil && n >= frameHeader+(int(head[0])<<16|int(head[1])<<8|int(head[2]))
}
