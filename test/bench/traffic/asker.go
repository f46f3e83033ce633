package traffic

import (
	"errors"
	"fmt"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"golang.org/x/net/http2"
	"google.golang.org/protobuf/proto"
)

// An Asker is a connection over which some calls of Envoy's rate limit service are always
// under way: each that is answered is followed by another. Its calls are too small for windows
// to count.
type Asker struct {
	*link

	head []byte // of every call
	open map[uint32]*question
}

// A question is a call under way.
type question struct {
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
)

// NewAsker connects to a rate limit service.
func NewAsker(address string) (*Asker, error) {
	head, err := head(ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName)
	if err != nil {
		return nil, err
	}
	l, err := newLink(address)
	return &Asker{link: l, head: head, open: map[uint32]*question{}}, err
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
		stream, err := a.begin(a.head)
		a.open[stream] = &question{key: key, asked: now, ignored: now.Before(from)}
		return errors.Join(err, a.frames.WriteData(stream, true, messages[key]))
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

func (q *question) answered(now time.Time) Answer {
	r := Answer{Key: q.key, Admitted: q.code == admittedCode, Took: now.Sub(q.asked)}
	if second := now.Unix(); second == q.asked.Unix() {
		r.Window = second
	}
	return r
}

// read reads a frame, and returns the call that it ends, if any.
func (a *Asker) read() (ended *question, err error) {
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
	case *http2.RSTStreamFrame:
		if q != nil { // it is not answered yet
			return nil, fmt.Errorf("the server reset a call: %v", f.ErrCode)
		}
	case *http2.HeadersFrame:
		if f.StreamEnded() {
			delete(a.open, f.StreamID)
			return q, nil
		}
	}
	_, _, err = a.control(frame)
	return nil, err
}
