package frames

import (
	"encoding/binary"
	"net/http"
	"runtime"
	"strconv"

	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
)

var (
	callAnswer  = []hpack.HeaderField{field(":status", "200"), field("content-type", grpcType)}
	callTrailer = []hpack.HeaderField{field("grpc-status", "0")}
)

// reply answers a call.
func (s *stream) reply(r Reply) { s.replyAs(http.StatusOK, r) }

// replyAs answers a call with a status of HTTP, which is 200 unless what came is not a call.
func (s *stream) replyAs(status int, r Reply) {
	s.begun, s.own = true, true
	s.call.message = nil
	s.up.drop()
	s.down.ended = true
	client := s.conn.client
	if r.Code != codes.OK {
		s.down.sent = true
		client.headers(s.id, []hpack.HeaderField{
			field(":status", strconv.Itoa(status)), callAnswer[1], field("grpc-status", strconv.Itoa(int(r.Code))), messageField(r.Text),
		}, true)
		s.ended(&s.down)
		return
	}
	client.headers(s.id, callAnswer, false)
	s.down.trailer = callTrailer
	binary.BigEndian.PutUint32(r.Message[1:], uint32(len(r.Message)-MessageRoom))
	s.down.push(r.Message)
}

// flushSoon sends what is there together with what goroutines that are ready to run add: calls
// that wait for one store are answered together.
func (c *conn) flushSoon() {
	if c.soon {
		return
	}
	c.soon = true
	c.mu.Unlock()
	runtime.Gosched()
	c.mu.Lock()
	c.soon = false
	c.flush()
}
