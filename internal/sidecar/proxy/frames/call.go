package frames

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
)

// Calls are unary calls of gRPC, which a server answers in the place of an app.
type Calls struct {
	// Methods are those that are served, by their paths.
	Methods map[string]Method
	// MessageBytes is the most that a message may have.
	MessageBytes int
}

// A Method reads the message of a call, which it does not keep. It neither blocks nor panics.
type Method func(message []byte) Call

// A Call is a call whose message was read. Its methods do not panic.
type Call interface {
	// Now returns the answer, or false where that would block.
	Now() (Reply, bool)
	// Wait returns the answer, at the latest soon after ctx is done. It is called after Now only.
	Wait(ctx context.Context) Reply
}

// A Reply is the answer to a call.
type Reply struct {
	Message []byte // with Code OK, behind MessageRoom bytes that are 0
	Code    codes.Code
	Text    string // that goes with another code
}

// errorReply returns an answer with a code other than OK.
func errorReply(code codes.Code, format string, args ...any) Reply {
	return Reply{Code: code, Text: fmt.Sprintf(format, args...)}
}

// MessageRoom is how many bytes gRPC puts before a message: one that is 1 where it is compressed,
// and its length.
const MessageRoom = prefixBytes

const prefixBytes = 5

// messageFree is how much of a message is part of what a call takes.
const messageFree = 4 << 10

// A call is what a stream has of a call of gRPC.
type call struct {
	method   Method
	deadline time.Time       // zero where there is none
	ctx      context.Context //nolint:containedctx // of the one call
	read     Call
	message  []byte // what has come of it, with its prefix
}

// receive takes a part of the message. That is handed on as it is where it is all of it.
func (s *stream) receive(part []byte) {
	s.up.credit(int64(len(part)))
	m := &s.call.message
	if len(*m) == 0 && s.up.ended {
		if len(part) > messageFree && !s.taken.TakeMessage(int64(len(part))) {
			s.reply(noMemory)
			return
		}
		s.complete(part)
		return
	}
	before := len(*m)
	if *m = append(*m, part...); before < prefixBytes && len(*m) >= prefixBytes && !s.reserve() {
		return
	}
	switch whole := lengthWithPrefix(*m); {
	case whole > 0 && len(*m) > whole:
		s.reply(errorReply(codes.Internal, "cardinality violation: received multiple request messages for non-client-streaming RPC"))
	case s.up.ended:
		s.complete(*m)
	}
}

// lengthWithPrefix returns how long the message will be with its prefix, 0 while that is not known.
func lengthWithPrefix(message []byte) int {
	if len(message) < prefixBytes {
		return 0
	}
	return prefixBytes + int(binary.BigEndian.Uint32(message[1:]))
}

// reserve makes room for the message whose prefix has come, or answers the call.
func (s *stream) reserve() bool {
	m := &s.call.message
	whole := lengthWithPrefix(*m)
	if whole > prefixBytes+s.conn.server.cfg.Calls.MessageBytes {
		s.reply(s.tooLong(whole))
		return false
	}
	if whole > messageFree && !s.taken.TakeMessage(2*int64(whole)) { // it is there a second time once it is read
		s.reply(noMemory)
		return false
	}
	*m = append(make([]byte, 0, max(whole, len(*m))), *m...)
	return true
}

func (s *stream) tooLong(whole int) Reply {
	return errorReply(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", whole-prefixBytes, s.conn.server.cfg.Calls.MessageBytes)
}

var noMemory = Reply{Code: codes.Unavailable, Text: "the sidecar has no memory left for the call"}

// complete has a call answered that has ended behind the message: at once, or by a goroutine of its
// own.
func (s *stream) complete(message []byte) {
	switch whole := lengthWithPrefix(message); {
	case len(message) == 0:
		s.reply(errorReply(codes.Internal, "cardinality violation: received no request message from non-client-streaming RPC"))
		return
	case whole > prefixBytes+s.conn.server.cfg.Calls.MessageBytes:
		s.reply(s.tooLong(whole))
		return
	case len(message) < prefixBytes || len(message) < whole:
		s.reply(errorReply(codes.Internal, "unexpected EOF"))
		return
	case len(message) > whole:
		s.reply(errorReply(codes.Internal, "cardinality violation: received multiple request messages for non-client-streaming RPC"))
		return
	case message[0] == 1:
		s.reply(errorReply(codes.Internal, "grpc: compressed flag set with identity or empty encoding"))
		return
	case message[0] != 0:
		s.reply(errorReply(codes.Internal, "grpc: received unexpected payload format %d", message[0]))
		return
	}
	k := s.call
	k.read = k.method(message[prefixBytes:])
	k.message = nil
	if r, ok := k.read.Now(); ok {
		s.reply(r)
		return
	}
	if k.deadline.IsZero() {
		k.ctx, s.cancel = context.WithCancel(context.Background()) // the end of the connection closes the stream
	} else {
		k.ctx, s.cancel = context.WithDeadline(context.Background(), k.deadline)
	}
	s.deciding = true
	s.conn.running.Add(1)
	s.conn.server.workers.run(s)
}

// wait answers a call whose answer has to be waited for.
func (s *stream) wait() {
	c := s.conn
	defer c.running.Done()
	r := s.call.read.Wait(s.call.ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	s.deciding = false
	if s.over {
		c.lingering--
		s.taken.Done()
		return
	}
	s.reply(r)
	c.flushSoon()
}
