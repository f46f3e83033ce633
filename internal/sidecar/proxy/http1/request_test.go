package http1

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
	"github.com/weir-dev/weir/internal/sidecar/proxy/framing/framingtest"
)

// TestATargetIsReadAsByTheStandardLibrary, also where that is left out.
func TestATargetIsReadAsByTheStandardLibrary(t *testing.T) {
	for _, target := range []string{
		"/", "/a/b", "/a?b", "/a?", "/?", "/a?b=c&d", "/a;b=c,d:e@f", "/a%20b", "/a b", "//a/b", "/a?b%zz", "/a?\"<>", "/caf\xc3\xa9", "/a?caf\xc3\xa9", "/a'b", "/a(b)", "/a*b", "/a!b", "/[a]", "/{x}",
		"/a?b?c", "/a?b#c", "/a=b+c$d&e", "/~a_b.c-d", "*", "http://a/b?c",
	} {
		want, err := url.ParseRequestURI(target)
		tr := new(transfer)
		r := &http.Request{Method: http.MethodGet, RequestURI: target}
		if ok := tr.address(r); ok != (err == nil) {
			t.Errorf("%q: is one: %t, want %v", target, ok, err)
		} else if ok && tr.url != *want {
			t.Errorf("%q: %+v, want %+v", target, tr.url, *want)
		}
	}
}

// FuzzRequests sends what a client may, and compares what passes with what net/http reads of it.
// The app answers all.
func FuzzRequests(f *testing.F) {
	for i, stream := range framingtest.Known() {
		if i%40 == 0 && len(stream) < 1000 {
			f.Add([]byte(stream), uint8(i))
		}
	}
	f.Add([]byte("POST /a?b HTTP/1.1\r\nhost: a\r\nX-b: c\r\nx-B: d\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\nX-Sum: 1\r\n\r\n"), uint8(7))
	f.Fuzz(func(t *testing.T, stream []byte, cut uint8) {
		if len(stream) > 20_000 {
			return
		}
		handler := &passing{entered: make(chan *http.Request, 10_000), endings: make(chan exchange.Ending, 10_000)}
		atApp := make(chan *http.Request, 10_000)
		s := NewServer(Config{
			Handler: handler, Host: "app", NoMemory: func(http.ResponseWriter, *http.Request) {}, Malformed: func() {}, Log: slog.New(slog.DiscardHandler),
			Dial: func(context.Context) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() {
					defer theirs.Close()
					for in := bufio.NewReader(theirs); ; {
						r, err := http.ReadRequest(in)
						if err != nil {
							return
						}
						body, err := io.ReadAll(r.Body)
						if err != nil {
							return
						}
						r.Body = io.NopCloser(bytes.NewReader(body))
						atApp <- r
						if _, err := io.WriteString(theirs, fine); err != nil {
							return
						}
					}
				}()
				return ours, nil
			},
		})
		ours, theirs := net.Pipe()
		var running sync.WaitGroup
		running.Go(func() { _ = s.Serve(&one{conn: theirs, closed: make(chan struct{})}, membudget.New(1<<40).Port(false)) })
		running.Go(func() { _, _ = io.Copy(io.Discard, ours) })
		_ = ours.SetWriteDeadline(time.Now().Add(lateness))
		for rest := stream; len(rest) > 0; {
			n := min(len(rest), int(cut)+1)
			if _, err := ours.Write(rest[:n]); err != nil {
				break
			}
			rest = rest[n:]
		}
		_ = ours.Close()
		s.Close()
		running.Wait()
		in := bufio.NewReaderSize(bytes.NewReader(stream), 1<<16)
		for len(atApp) > 0 {
			got := <-atApp
			want, err := http.ReadRequest(in)
			for err != nil && strings.Contains(err.Error(), "malformed") && in.Buffered() > 0 { // an empty line behind a POST
				want, err = http.ReadRequest(in)
			}
			if err != nil {
				t.Fatalf("%q passes, which net/http does not read: %v", got.RequestURI, err)
			}
			compareRequests(t, got, want)
		}
	})
}

// compareRequests compares a request at the app with the one that was sent.
func compareRequests(t *testing.T, got, want *http.Request) {
	t.Helper()
	body, err := io.ReadAll(want.Body)
	seen, _ := io.ReadAll(got.Body)
	if err != nil || !bytes.Equal(body, seen) {
		t.Errorf("the body is %q, want %q, %v", seen, body, err)
	}
	if got.Method != want.Method || got.URL.Path != want.URL.Path || got.URL.RawQuery != want.URL.RawQuery {
		t.Errorf("the app is asked for %s %s, want %s %s", got.Method, got.RequestURI, want.Method, want.RequestURI)
	}
	for name, values := range want.Header {
		if !ofConnection(name) && !slices.Equal(got.Header[name], values) {
			t.Errorf("%s is %q, want %q", name, got.Header[name], values)
		}
	}
	if want.Trailer != nil && !maps.EqualFunc(got.Trailer, want.Trailer, slices.Equal) {
		t.Errorf("the trailer is %v, want %v", got.Trailer, want.Trailer)
	}
}

// one is a listener of one connection.
type one struct {
	conn   net.Conn
	once   sync.Once
	closed chan struct{}
	mu     sync.Mutex
}

func (l *one) Accept() (net.Conn, error) {
	l.mu.Lock()
	c := l.conn
	l.conn = nil
	l.mu.Unlock()
	if c != nil {
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *one) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (*one) Addr() net.Addr { return &net.TCPAddr{} }
