package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"time"
)

// maxAnswerHead bounds the header of an answer in bytes, as http.Transport does.
const maxAnswerHead = 10 << 20

var (
	errNothingSent = errors.New("nothing of the request was sent")
	errHeadTooLong = fmt.Errorf("the header of the app's answer exceeds %d bytes", maxAnswerHead)
)

// A link is a connection to the app that one request at a time uses, on its own goroutine.
type link struct {
	conn    net.Conn
	in      *bufio.Reader
	room    int64      // bytes that may still be read
	idle    *idleLinks // where it goes between requests
	used    bool       // it was there before
	since   time.Time  // idle
	unwatch func() bool
}

func newLink(conn net.Conn, idle *idleLinks) *link {
	l := &link{conn: conn, idle: idle}
	l.in = bufio.NewReader(l)
	return l
}

// Read implements io.Reader.
func (l *link) Read(p []byte) (int, error) {
	if l.room <= 0 {
		return 0, errHeadTooLong
	}
	n, err := l.conn.Read(p[:min(int64(len(p)), l.room)])
	l.room -= int64(n)
	return n, err //nolint:wrapcheck // of the connection
}

// send sends the head of a request and waits for the first byte of the answer. From here
// to the end of the answer the end of ctx closes the connection.
func (l *link) send(ctx context.Context, head []byte) error {
	l.unwatch = context.AfterFunc(ctx, func() { _ = l.conn.Close() })
	n, err := l.conn.Write(head)
	if err == nil {
		l.room = maxAnswerHead
		_, err = l.in.Peek(1)
	} else if n == 0 {
		err = fmt.Errorf("%w: %w", errNothingSent, err)
	}
	if err != nil {
		l.end(false)
	}
	return err
}

// receive reads the answer. Its body is left to the caller.
func (l *link) receive(r *http.Request) (*http.Response, error) {
	res, err := l.final(r)
	if err != nil {
		l.end(false)
		if ctx := r.Context(); ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	l.room = math.MaxInt64
	again := !res.Close && res.StatusCode >= http.StatusOK
	if r.Method == http.MethodHead || res.ContentLength == 0 {
		l.end(again)
	} else {
		res.Body = &answerBody{ReadCloser: res.Body, link: l, request: r, again: again}
	}
	return res, nil
}

// final returns the first answer that is not informational. Those before are passed on.
func (l *link) final(r *http.Request) (*http.Response, error) {
	for {
		res, err := http.ReadResponse(l.in, r)
		if err != nil || res.StatusCode >= http.StatusOK || res.StatusCode == http.StatusSwitchingProtocols {
			return res, err //nolint:wrapcheck // as of an http.Transport
		}
		if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.Got1xxResponse != nil {
			if err := trace.Got1xxResponse(res.StatusCode, textproto.MIMEHeader(res.Header)); err != nil {
				return nil, err //nolint:wrapcheck // the error of the request's own trace
			}
			l.room = maxAnswerHead
		}
	}
}

// end ends a request. The connection is kept for others when it can serve again, and
// nothing came behind the answer. It is not when the request's context closes it, which
// cannot begin any more once unwatched.
func (l *link) end(again bool) {
	if unwatched := l.unwatch(); unwatched && again && l.in.Buffered() == 0 && l.idle.put(l) {
		return
	}
	_ = l.conn.Close()
}

// An answerBody is the body of an answer. Read to its end it frees the connection, and
// closed before it closes it: the rest may be long, or never come.
type answerBody struct {
	io.ReadCloser
	link    *link
	request *http.Request
	again   bool  // the connection can serve again
	over    error // why nothing more is read
}

// Read implements io.Reader.
func (b *answerBody) Read(p []byte) (int, error) {
	if b.over != nil {
		return 0, b.over
	}
	n, err := b.ReadCloser.Read(p)
	if err == nil {
		return n, nil
	}
	b.finish(err, b.again && errors.Is(err, io.EOF))
	return n, b.over
}

// Close implements io.Closer.
func (b *answerBody) Close() error {
	if b.over == nil {
		b.finish(http.ErrBodyReadAfterClose, false)
	}
	return nil
}

func (b *answerBody) finish(why error, again bool) {
	b.over = why
	if ctx := b.request.Context(); !errors.Is(why, io.EOF) && ctx.Err() != nil {
		b.over = context.Cause(ctx)
	}
	b.link.end(again)
}
