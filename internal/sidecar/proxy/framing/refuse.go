package framing

import (
	"io"
	"net"
	"strings"
	"time"
)

const (
	// refusing is how many connections at once are read from only to be refused. Each takes a
	// goroutine.
	refusing = 64
	// refuseTime is how long a client has to send the first bytes, by which the protocol of the
	// answer is known, and then to read it.
	refuseTime = time.Second
	// YieldTime is how long a connection that gives way may take to be written to.
	YieldTime = 10 * time.Millisecond
	// lastRest bounds what is read and dropped behind an answer.
	lastRest = 64 << 10
)

// A Refuser answers connections that there is no memory for. When it has too many at a time, the
// one that waits for the longest is answered at once, whatever its protocol may be.
type Refuser struct {
	slots chan struct{}
	last  [refusing]net.Conn
	next  int
}

// NewRefuser returns a Refuser.
func NewRefuser() *Refuser { return &Refuser{slots: make(chan struct{}, 2*refusing)} }

// Refuse answers c and closes it, on a goroutine of its own. One goroutine at a time calls it.
func (r *Refuser) Refuse(c net.Conn) {
	if oldest := r.last[r.next]; oldest != nil {
		_ = oldest.SetReadDeadline(time.Now()) // closed already, mostly
	}
	r.last[r.next] = c
	r.next = (r.next + 1) % refusing
	r.slots <- struct{}{}
	_ = c.SetReadDeadline(time.Now().Add(refuseTime))
	go func() {
		defer func() { <-r.slots }()
		TurnAway(c, answerTo(c))
		_ = c.Close()
	}()
}

// answerTo reads until it is known which protocol the client speaks, and returns the answer in
// that.
func answerTo(c net.Conn) string {
	var first [len(Preface)]byte
	read := 0
	for read < len(first) {
		n, err := c.Read(first[read:])
		read += n
		if !strings.HasPrefix(Preface, string(first[:read])) || err != nil {
			return NoMemory
		}
	}
	return GoAway
}

// TurnAway sends the answer and ends what is sent. It reads on from the client: closed
// with something unread the connection would be reset, and the answer may be lost.
func TurnAway(c net.Conn, answer string) {
	_ = c.SetWriteDeadline(time.Now().Add(refuseTime))
	if _, err := io.WriteString(c, answer); err != nil {
		return
	}
	half, ok := c.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(refuseTime))
	_, _ = io.CopyN(io.Discard, c, lastRest)
}
