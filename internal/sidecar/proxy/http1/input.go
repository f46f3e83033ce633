package http1

import (
	"errors"
	"io"
	"os"
	"sync"

	"github.com/weir-dev/weir/internal/sidecar/proxy/socket"
)

const (
	firstBytes = 4 << 10  // of the buffer that heads are read through
	maxHead    = 36 << 10 // of a request
)

// A scratch is what a request needs, from its first bytes to the end of its answer. A connection has
// none while it waits for one.
type scratch struct {
	first [firstBytes]byte
	head  head
	out   []byte // a head that is written, and the part of a body behind it
}

var scratches = sync.Pool{New: func() any { return &scratch{out: make([]byte, 0, 2<<10)} }}

// keptOut is how large out may be to be used again.
const keptOut = 8 << 10

// ios are for connections that are not parked.
var ios = sync.Pool{New: func() any { return new(socket.IO) }}

// prepare takes what a connection needs while it is not parked.
func (c *conn) prepare() {
	if c.io == nil {
		c.io = ios.Get().(*socket.IO) //nolint:forcetypeassert // nothing else is in there
		c.io.Use(c.Conn)
		c.out.to.Through = c.io
	}
}

// release gives all back.
func (c *conn) release() {
	c.TakeBack()
	if c.io != nil {
		c.io.Use(nil)
		ios.Put(c.io)
		c.io, c.out.to.Through = nil, nil
	}
}

// Lend implements socket.Lender, for the first bytes of a request.
func (c *conn) Lend() []byte {
	if c.scratch == nil {
		c.scratch = scratches.Get().(*scratch) //nolint:forcetypeassert // nothing else is in there
	}
	c.in.buf = c.scratch.first[:]
	c.scratch.head.reset(c.post)
	return c.in.buf
}

// TakeBack implements socket.Lender. Bytes that were read and not used are dropped.
func (c *conn) TakeBack() {
	s := c.scratch
	if s == nil {
		return
	}
	c.scratch, c.in.buf, c.in.from, c.in.to = nil, nil, 0, 0
	if cap(s.out) > keptOut {
		s.out = make([]byte, 0, 2<<10)
	}
	if cap(s.head.fields) > maxFields {
		s.head.fields = nil
	}
	scratches.Put(s)
}

// An input is what was read from a connection and not used yet.
type input struct {
	buf      []byte
	from, to int
	err      error // why nothing more can be read
}

func (i *input) some() bool { return i.from < i.to }

// bytes returns what there is.
func (i *input) bytes() []byte { return i.buf[i.from:i.to] }

// skip says that n bytes are used.
func (i *input) skip(n int) {
	if i.from += n; i.from == i.to {
		i.from, i.to = 0, 0
	}
}

// room makes room behind what there is: for one byte, if the buffer may be that large.
func (i *input) room(most int) bool {
	if i.to < len(i.buf) {
		return true
	}
	if i.from > 0 {
		i.to = copy(i.buf, i.bytes())
		i.from = 0
		return true
	}
	if len(i.buf) >= most {
		return false
	}
	larger := make([]byte, min(2*len(i.buf), most))
	copy(larger, i.buf)
	i.buf = larger
	return true
}

// fill reads once from a connection, into the room that there is.
func (i *input) fill(c io.Reader) (n int, err error) {
	if i.err != nil {
		return 0, i.err
	}
	n, err = c.Read(i.buf[i.to:])
	return i.came(n, err)
}

// await reads the first bytes of a request. The connection has no buffer while it waits for them.
func (c *conn) await() (n int, err error) {
	if c.in.err != nil {
		return 0, c.in.err
	}
	n, err = c.io.ReadLent(c)
	return c.in.came(n, err)
}

// came notes what a read has returned.
func (i *input) came(n int, err error) (int, error) {
	i.to += n
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		i.err = err
	}
	return n, err //nolint:wrapcheck // of the connection
}

// shrink goes back to a small buffer, where what there is fits in.
func (i *input) shrink(small []byte) {
	if len(i.buf) > len(small) && i.to-i.from <= len(small) {
		i.to = copy(small, i.bytes())
		i.from, i.buf = 0, small
	}
}

// keep puts back what was read and not used. There is nothing else.
func (i *input) keep(p []byte) {
	if len(p) == 0 {
		return
	}
	if len(p) > len(i.buf) {
		i.buf = make([]byte, len(p))
	}
	i.from, i.to = 0, copy(i.buf, p)
}
