package http1

import (
	"sync"

	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
)

// firstByte is the first byte of any answer of HTTP/1.
const firstByte = "H"

// An outgoing is what is sent to a client. While a request is slow, a goroutine that looks after
// the client may send the beginning of what comes next; see watch.
type outgoing struct {
	mu      sync.Mutex
	to      framing.Writer
	begun   bool // something of the answer was sent
	between bool // whole chunks were, and another one follows
	ahead   bool // its first byte was, and nothing else
	tried   bool // something was sent to see whether the client is there
}

// reset begins with another answer.
func (o *outgoing) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun, o.between, o.ahead, o.tried = false, false, false, false
}

// write sends a part of the answer. between says that it ends with a chunk, and another follows.
func (o *outgoing) write(p []byte, between bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(p) == 0 {
		return nil
	}
	if o.ahead {
		o.ahead = false
		p = p[len(firstByte):]
	}
	o.begun, o.between = true, between
	_, err := o.to.Write(p)
	return err //nolint:wrapcheck // of the connection
}

// tryAhead sends something to see whether the client is there, once and where it can.
func (o *outgoing) tryAhead() (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.tried:
	case !o.begun:
		o.tried, o.begun, o.ahead = true, true, true
		_, err = o.to.Write([]byte(firstByte))
	case o.between:
		o.tried = true
		_, err = o.to.Write([]byte{'0'})
	}
	return err //nolint:wrapcheck // of the connection
}

// interim sends an answer that another one follows.
func (o *outgoing) interim(p []byte) error {
	err := o.write(p, false)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun = false
	return err
}
