package http1

import (
	"errors"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// A body is that of a request. One goroutine at a time reads it.
type body struct {
	chunks *chunks // nil: it has a length
	left   uint64  // of that
	read   int     // bytes
	whole  bool    // all was read
}

func (b *body) of(h *head) {
	b.left, b.whole = h.Length, h.Length == 0 && !h.Chunked
	if h.Chunked {
		b.chunks = new(chunks)
	}
}

var errMalformed = errors.New("the body is malformed")

// took notes n bytes of data, which were the last that has come.
func (b *body) took(n int) error {
	b.read += n
	if b.chunks == nil {
		b.left -= uint64(n)
		b.whole = b.left == 0
		return nil
	}
	if b.whole = b.chunks.next == chunksOver; b.chunks.malformed {
		return errMalformed
	}
	return nil
}

// take appends to what is written to the app what has been read of the body.
func (t *transfer) take(to []byte) ([]byte, error) {
	b, in := &t.body, &t.conn.in
	if b.whole {
		return to, nil
	}
	p := in.bytes()
	if b.chunks == nil {
		n := int(min(b.left, uint64(len(p))))
		to = append(to, p[:n]...)
		in.skip(n)
		return to, b.took(n)
	}
	n, used := b.chunks.decode(p)
	to = appendChunk(to, p[:n])
	in.skip(used)
	if err := b.took(n); err != nil {
		return to, err
	}
	return t.last(to), nil
}

// last appends the end of a body in chunks, once that has been read.
func (t *transfer) last(to []byte) []byte {
	b := &t.body
	if !b.whole || b.chunks == nil {
		return to
	}
	trailer := b.chunks.header()
	t.conn.server.cfg.Handler.Trailer(t.r, trailer)
	return appendLast(to, trailer)
}

// next reads from the client by a function, and returns what is written to the app: nil where that
// reads nothing. It needs the buffer.
func (t *transfer) next(buffer []byte, by func([]byte) (int, error)) ([]byte, error) {
	b, c := &t.body, t.conn
	if c.in.some() {
		return t.take(buffer[:0])
	}
	if b.chunks == nil {
		n, err := by(buffer[:min(uint64(len(buffer)), b.left)])
		if n > 0 {
			return buffer[:n], b.took(n)
		}
		return nil, err //nolint:wrapcheck // of the connection
	}
	raw := buffer[headroom : len(buffer)-len("\r\n")]
	came, err := by(raw)
	if came == 0 {
		return nil, err //nolint:wrapcheck // of the connection
	}
	n, used := b.chunks.decode(raw[:came])
	c.in.keep(raw[used:came])
	if err := b.took(n); err != nil {
		return nil, err
	}
	return t.last(frameChunk(buffer, n)), nil
}

// restTime is how long a client has to send the rest of a body that is not sent on.
const restTime = 5 * time.Second

// drop reads what is left of the body, at most that many bytes, and reports whether that was all.
func (t *transfer) drop(until time.Time, most int) bool {
	c := t.conn
	if t.body.whole {
		return true
	}
	stop := t.body.read + most
	if c.bound(until) != nil {
		return false
	}
	buffer := c.server.buffers.get()
	defer c.server.buffers.put(buffer)
	for !t.body.whole && t.body.read <= stop {
		if _, err := t.next(buffer, c.Read); err != nil {
			if errors.Is(err, errMalformed) {
				c.malformed()
			}
			return false
		}
	}
	return t.body.whole && c.bound(time.Time{}) == nil
}

// keeps reports whether so little of the body was read that it can be sent again.
func (b *body) keeps() bool { return b.read <= exchange.KeptBytes }
