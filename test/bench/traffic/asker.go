package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"golang.org/x/net/http2"
	"google.golang.org/protobuf/proto"
)

// An Asker is a connection over which some calls of Envoy's rate limit service are always
// under way: each that is answered is followed by another. Its calls are too small for windows
// to count. As those of Envoy do, their heads refer to that of the first one. It writes and reads
// their frames itself, since the services on the same machine do not get the time that it takes.
type Asker struct {
	*link

	first, others []byte // how the first call begins, and the others; see beginning
	open          []question
}

// A question is a call under way.
type question struct {
	stream  uint32
	key     int
	asked   time.Time
	code    byte // of the answer, 0 before it
	ignored bool // it was asked before its turn began
}

// An Answer is what one call brought.
type Answer struct {
	Key      int // which of the messages it answers
	Admitted bool
	Window   int64 // the second in which it was asked and answered, 0 where that is not one
	Took     time.Duration
}

const (
	admittedCode = byte(ratelimitv3.RateLimitResponse_OK)
	refusedCode  = byte(ratelimitv3.RateLimitResponse_OVER_LIMIT)

	frameHeader = 9 // bytes: length, type, flags, stream
	streamAt    = 5 // in there
)

// NewAsker connects to a rate limit service.
func NewAsker(address string) (*Asker, error) {
	first, others, err := heads(ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName)
	if err != nil {
		return nil, err
	}
	l, err := newLink(address)
	return &Asker{link: l, first: beginning(first), others: beginning(others)}, err
}

// beginning returns how a call begins: the frame of its head, and the header of that of its message.
func beginning(head []byte) []byte {
	b := append(frameOf(len(head), http2.FrameHeaders, http2.FlagHeadersEndHeaders), head...)
	return append(b, frameOf(0, http2.FrameData, http2.FlagDataEndStream)...)
}

// frameOf returns the header of a frame of no stream yet.
func frameOf(length int, kind http2.FrameType, flags http2.Flags) []byte {
	return []byte{byte(length >> 16), byte(length >> 8), byte(length), byte(kind), byte(flags), 0, 0, 0, 0}
}

// Address is what it is connected to.
func (a *Asker) Address() string { return a.conn.RemoteAddr().String() }

// Close closes the connection.
func (a *Asker) Close() { _ = a.conn.Close() }

// Message is the call about a descriptor of one entry, as it is sent.
func Message(domain, key, value string) []byte {
	body, err := proto.Marshal(&ratelimitv3.RateLimitRequest{Domain: domain, Descriptors: []*commonv3.RateLimitDescriptor{
		{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: key, Value: value}}},
	}})
	if err != nil {
		panic(err) // it is made of valid text
	}
	return append([]byte{0, byte(len(body) >> 24), byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
}

// Keep keeps the given number of calls under way until an instant, and waits for the last answer.
// Requests are drawn from the messages until draw returns -1. Answers are handed to note,
// unless they were asked for before an instant.
func (a *Asker) Keep(calls int, from, until time.Time, messages [][]byte, draw func() int, note func(Answer)) error {
	if err := a.conn.SetDeadline(until.Add(10 * time.Second)); err != nil {
		return err
	}
	ask := func(now time.Time) error {
		key := draw()
		if key < 0 {
			return nil
		}
		a.open = append(a.open, question{stream: a.stream, key: key, asked: now, ignored: now.Before(from)})
		return a.write(messages[key])
	}
	for range calls {
		if err := ask(time.Now()); err != nil {
			return err
		}
	}
	for len(a.open) > 0 {
		if err := a.flush(); err != nil {
			return err
		}
		ended, err := a.read()
		if err != nil {
			return err
		}
		if ended.stream == 0 {
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

// write begins the next call.
func (a *Asker) write(message []byte) error {
	call := a.others
	if a.stream == 1 {
		call = a.first
	}
	data := call[len(call)-frameHeader:]
	data[1], data[2] = byte(len(message)>>8), byte(len(message))
	binary.BigEndian.PutUint32(call[streamAt:], a.stream)
	binary.BigEndian.PutUint32(data[streamAt:], a.stream)
	a.stream += 2
	_, err := a.out.Write(call)
	_, failed := a.out.Write(message)
	return errors.Join(err, failed)
}

func (q *question) answered(now time.Time) Answer {
	r := Answer{Key: q.key, Admitted: q.code == admittedCode, Took: now.Sub(q.asked)}
	if second := now.Unix(); second == q.asked.Unix() {
		r.Window = second
	}
	return r
}

// read reads a frame, and returns the call that it ends; its stream is 0 where there is none.
func (a *Asker) read() (ended question, err error) {
	header, err := a.in.Peek(frameHeader)
	if err != nil {
		return question{}, err
	}
	length := int(header[0])<<16 | int(header[1])<<8 | int(header[2])
	kind, flags, stream := http2.FrameType(header[3]), http2.Flags(header[4]), binary.BigEndian.Uint32(header[streamAt:])
	at := slices.IndexFunc(a.open, func(q question) bool { return q.stream == stream })
	if at < 0 || kind != http2.FrameData && kind != http2.FrameHeaders {
		return question{}, a.other()
	}
	frame, err := a.in.Peek(frameHeader + length)
	if err != nil {
		return question{}, err
	}
	q := &a.open[at]
	// After the five bytes before a message its first field is the overall code.
	if data := frame[frameHeader:]; kind == http2.FrameData && len(data) >= 7 && data[5] == 8 {
		q.code = data[6]
	}
	if kind == http2.FrameData {
		err = a.came(uint32(length))
	} else if flags.Has(http2.FlagHeadersEndStream) {
		ended = *q
		a.open = slices.Delete(a.open, at, at+1)
	}
	_, failed := a.in.Discard(len(frame))
	return ended, errors.Join(err, failed)
}

// other reads a frame that answers no call.
func (a *Asker) other() error {
	frame, err := a.frames.ReadFrame()
	if err != nil {
		return err
	}
	if f, ok := frame.(*http2.RSTStreamFrame); ok && slices.ContainsFunc(a.open, func(q question) bool { return q.stream == f.StreamID }) {
		return fmt.Errorf("the server reset a call: %v", f.ErrCode) // it is not answered yet
	}
	_, _, err = a.control(frame)
	return err
}
