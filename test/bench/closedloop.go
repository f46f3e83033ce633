package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
)

// An asker is a connection over which some calls of Envoy's rate limit service are always
// under way: each that is answered is followed by another. It speaks just enough HTTP/2 to
// cost less than any server it asks.
type asker struct {
	conn   net.Conn
	in     *bufio.Reader
	out    *bufio.Writer
	frames *http2.Framer
	head   []byte // of every call
	stream uint32 // that the next call gets
	unread uint32 // bytes that the server was not yet allowed to replace
	open   map[uint32]*question
}

// A question is a call under way.
type question struct {
	key     int
	asked   time.Time
	code    byte // of the answer, 0 before it
	ignored bool // it was asked before its turn began
}

// An answer is what one call brought.
type answer struct {
	key      int
	admitted bool
	window   int64 // of a second in which it was asked and answered, 0 when it was not one
	took     time.Duration
}

const (
	admittedCode = byte(ratelimitv3.RateLimitResponse_OK)
	refusedCode  = byte(ratelimitv3.RateLimitResponse_OVER_LIMIT)
)

// newAsker connects to a rate limit service.
func newAsker(address string) (*asker, error) {
	conn, err := net.Dial("tcp", address) //nolint:noctx // to this machine
	if err != nil {
		return nil, err
	}
	a := &asker{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), out: bufio.NewWriterSize(conn, 64<<10), open: map[uint32]*question{}}
	a.stream = 1
	a.frames = http2.NewFramer(a.out, a.in)
	a.frames.SetReuseFrames()
	var head headers
	fields := hpack.NewEncoder(&head)
	fields.SetMaxDynamicTableSize(0) // so that it says the same each time
	for _, f := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName},
		{":authority", "bench"}, {"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		if err := fields.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			return nil, err
		}
	}
	a.head = head
	_, err = a.out.WriteString(http2.ClientPreface)
	return a, errors.Join(err, a.frames.WriteSettings(), a.frames.WriteWindowUpdate(0, 1<<30), a.out.Flush())
}

// headers collects an encoded block.
type headers []byte

func (h *headers) Write(p []byte) (int, error) {
	*h = append(*h, p...)
	return len(p), nil
}

// message is the call about a descriptor of one entry, as it is sent.
func message(domain, key, value string) []byte {
	body, err := proto.Marshal(&ratelimitv3.RateLimitRequest{Domain: domain, Descriptors: []*commonv3.RateLimitDescriptor{
		{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: key, Value: value}}},
	}})
	must(err)
	return append([]byte{0, byte(len(body) >> 24), byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
}

// keep keeps the given number of calls under way until an instant, and waits for the last answer.
// Requests are drawn from the messages until draw returns -1. Answers are handed to note,
// unless they were asked for before an instant.
func (a *asker) keep(calls int, from, until time.Time, messages [][]byte, draw func() int, note func(answer)) error {
	if err := a.conn.SetDeadline(until.Add(10 * time.Second)); err != nil {
		return err
	}
	ask := func(now time.Time) error {
		key := draw()
		if key < 0 {
			return nil
		}
		stream := a.stream
		a.stream += 2
		a.open[stream] = &question{key: key, asked: now, ignored: now.Before(from)}
		return errors.Join(
			a.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: a.head, EndHeaders: true}),
			a.frames.WriteData(stream, true, messages[key]))
	}
	for range calls {
		if err := ask(time.Now()); err != nil {
			return err
		}
	}
	for len(a.open) > 0 {
		if a.in.Buffered() == 0 {
			if err := a.out.Flush(); err != nil {
				return err
			}
		}
		ended, err := a.read()
		if err != nil {
			return err
		}
		if ended == nil {
			continue
		}
		now := time.Now()
		if ended.code != admittedCode && ended.code != refusedCode {
			return fmt.Errorf("a call was answered with code %d", ended.code)
		}
		if !ended.ignored {
			note(ended.answered(now))
		}
		if now.Before(until) {
			if err := ask(now); err != nil {
				return err
			}
		}
	}
	return a.out.Flush()
}

func (q *question) answered(now time.Time) answer {
	r := answer{key: q.key, admitted: q.code == admittedCode, took: now.Sub(q.asked)}
	if second := now.Unix(); second == q.asked.Unix() {
		r.window = second
	}
	return r
}

// read reads a frame, and returns the call that it ends, if any.
func (a *asker) read() (ended *question, err error) {
	frame, err := a.frames.ReadFrame()
	if err != nil {
		return nil, err
	}
	q := a.open[frame.Header().StreamID]
	switch f := frame.(type) {
	case *http2.DataFrame:
		// After the five bytes before a message its first field is the overall code.
		if data := f.Data(); q != nil && len(data) >= 7 && data[5] == 8 {
			q.code = data[6]
		}
		a.unread += f.Length
		if a.unread > 1<<20 {
			err = a.frames.WriteWindowUpdate(0, a.unread)
			a.unread = 0
		}
	case *http2.SettingsFrame:
		if !f.IsAck() {
			err = a.frames.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			err = a.frames.WritePing(true, f.Data)
		}
	case *http2.GoAwayFrame:
		err = fmt.Errorf("the server goes away: %v", f.ErrCode)
	case *http2.RSTStreamFrame:
		if q != nil { // it is not answered yet
			err = fmt.Errorf("the server reset a call: %v", f.ErrCode)
		}
	case *http2.HeadersFrame:
		if f.StreamEnded() {
			delete(a.open, f.StreamID)
			return q, nil
		}
	}
	return nil, err
}
