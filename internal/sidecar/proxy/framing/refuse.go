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
	yieldTime  = 10 * time.Millisecond
	// lastRest bounds what is read and dropped behind an answer.
	lastRest = 64 << 10
)

// A refuser answers connections that there is no memory for. When it has too many at a time, the
// one that waits for the longest is answered at once, whatever its protocol may be.
type refuser struct {
	slots chan struct{}
	last  [refusing]net.Conn
	next  int
}

func newRefuser() *refuser { return &refuser{slots: make(chan struct{}, 2*refusing)} }

// refuse answers c and closes it, on a goroutine of its own. One goroutine at a time calls it.
func (r *refuser) refuse(c net.Conn) {
	if oldest := r.last[r.next]; oldest != nil {
		_ = oldest.SetReadDeadline(time.Now()) // closed already, mostly
	}
	r.last[r.next] = c
	r.next = (r.next + 1) % refusing
	r.slots <- struct{}{}
	_ = c.SetReadDeadline(time.Now().Add(refuseTime))
	go func() {
		defer func() { <-r.slots }()
		turnAway(c, answerTo(c))
		_ = c.Close()
	}()
}

// answerTo reads until it is known which protocol the client speaks, and returns the answer in
// that.
func answerTo(c net.Conn) string {
	var first [len(preface)]byte
	read := 0
	for read < len(first) {
		n, err := c.Read(first[read:])
		read += n
		if !strings.HasPrefix(preface, string(first[:read])) || err != nil {
			return noMemory
		}
	}
	return goAway
}

// turnAway sends the answer and ends what is sent. What the client still sends is read: closed
// with something unread the connection would be reset, and the answer may be lost.
func turnAway(c net.Conn, answer string) {
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
