package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// ErrSpoken says that a connection on which nothing was expected is not silent: the peer has ended
// it, or something has come over it.
var ErrSpoken = errors.New("the connection is not silent")

// An IO reads from and writes to the socket of a connection. A connection without one, and any
// outside of Linux, reads and writes itself. One goroutine at a time reads, and one writes. An IO
// must not be copied once it is used.
type IO struct {
	conn net.Conn
	raw  syscall.RawConn // nil: conn reads and writes itself

	in, out part
	lender  Lender // of the buffer that ReadLent reads into
	asked   bool   // the question of Ask is written

	// The steps, which are made once: a function that is made for each call is garbage behind it.
	receive, receiveLent, tryReceive, send, trySend, ask func(fd uintptr) bool
}

// A Lender lends the buffer of a connection over which nothing may come for long.
type Lender interface {
	// Lend returns the buffer to read into, which is not empty.
	Lend() []byte
	// TakeBack says that nothing was read into it. It may be called again before Lend.
	TakeBack()
}

// A part is what one call reads or writes.
type part struct {
	p    []byte
	n    int  // bytes of p that are done
	none bool // the socket is not ready
	err  error
}

// Use has the IO read from and write to c from now on, nil for none. No call may be under way.
func (s *IO) Use(c net.Conn) {
	s.conn, s.raw = c, RawOf(c)
	if s.receive == nil {
		s.receive, s.receiveLent, s.tryReceive, s.send, s.trySend, s.ask = s.receives, s.receivesLent, s.triesReceive, s.sends, s.triesSend, s.asks
	}
}

// Read implements io.Reader. It waits until there is something, or the deadline of reads.
func (s *IO) Read(p []byte) (int, error) {
	if s.raw == nil || len(p) == 0 {
		return s.conn.Read(p) //nolint:wrapcheck // of the connection
	}
	s.in = part{p: p}
	err := s.raw.Read(s.receive)
	return s.came(err)
}

// ReadLent is Read into a buffer that is lent only while there may be something to read. While the goroutine
// waits, a connection with a socket has no buffer.
func (s *IO) ReadLent(l Lender) (n int, err error) {
	if s.raw == nil {
		n, err = s.conn.Read(l.Lend())
	} else {
		s.in, s.lender = part{}, l
		n, err = s.came(s.raw.Read(s.receiveLent))
		s.lender = nil
	}
	if n == 0 {
		l.TakeBack()
	}
	return n, err //nolint:wrapcheck // of the connection
}

// TryRead reads what has come, and does not wait: it returns 0 and no error where that is nothing,
// or is not known.
func (s *IO) TryRead(p []byte) (int, error) {
	if s.raw == nil || len(p) == 0 {
		return 0, nil
	}
	s.in = part{p: p}
	err := s.raw.Read(s.tryReceive)
	if err == nil && s.in.none {
		s.in = part{}
		return 0, nil
	}
	return s.came(err)
}

// came returns what was read.
func (s *IO) came(err error) (int, error) {
	n := s.in.n
	if err == nil && s.in.err != nil {
		err = os.NewSyscallError("read", s.in.err)
	} else if err == nil && n == 0 {
		err = io.EOF
	}
	s.in = part{}
	return n, err
}

// Write implements io.Writer. It waits until all of p is taken, or for the deadline of writes.
func (s *IO) Write(p []byte) (int, error) {
	if s.raw == nil {
		return s.conn.Write(p) //nolint:wrapcheck // of the connection
	}
	s.out = part{p: p}
	err := s.raw.Write(s.send)
	return s.gone(err)
}

// TryWrite writes what is taken of p without waiting, which is nothing where that is not known.
func (s *IO) TryWrite(p []byte) (int, error) {
	if s.raw == nil {
		return 0, nil
	}
	s.out = part{p: p}
	err := s.raw.Write(s.trySend)
	return s.gone(err)
}

// gone returns what was written.
func (s *IO) gone(err error) (int, error) {
	n := s.out.n
	if err == nil && s.out.err != nil {
		err = os.NewSyscallError("write", s.out.err)
	}
	s.out = part{}
	return n, err
}

// Silent reports whether the peer has neither ended the connection nor said anything that was not
// read. It may take away what was said, and reports false when the deadline of reads has passed.
func (s *IO) Silent() bool {
	if s.raw == nil {
		return silent(s.conn)
	}
	var some [1]byte
	n, err := s.TryRead(some[:])
	return n == 0 && err == nil
}

// Ask writes a question over a silent connection, and reads what comes first of the answer into p.
// It returns how much of both there was. It waits for the answer up to the deadline of reads, but
// not to write: where less than all is written and no error returned, nothing was read. Over
// a connection that is not silent it writes nothing, and returns ErrSpoken.
func (s *IO) Ask(question, p []byte) (written, came int, err error) {
	if s.raw == nil {
		if !silent(s.conn) {
			return 0, 0, ErrSpoken
		}
		if written, err = s.conn.Write(question); err == nil {
			came, err = s.conn.Read(p)
		}
		return written, came, err //nolint:wrapcheck // of the connection
	}
	s.in, s.out, s.asked = part{p: p}, part{p: question}, false
	err = s.raw.Read(s.ask)
	written, failed := s.gone(nil)
	switch {
	case failed != nil:
		err = failed
	case err == nil && !s.asked:
		err = ErrSpoken
	case err == nil && written == len(question):
		came, err = s.came(nil)
	}
	s.in = part{}
	return written, came, err
}
