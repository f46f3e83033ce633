package http1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lateness is how long what is to happen may take on a busy machine.
const lateness = 20 * time.Second

const getRoot = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// A passing is a handler that admits all but what is under /refused.
type passing struct {
	entered chan *http.Request
	endings chan exchange.Ending
}

// Enter implements exchange.Handler.
func (p *passing) Enter(w http.ResponseWriter, r *http.Request) exchange.Exchange {
	p.entered <- r
	if r.URL.Path == "/refused" {
		w.WriteHeader(http.StatusTooManyRequests)
		return nil
	}
	return crossing{p}
}

// Trailer implements exchange.Handler.
func (*passing) Trailer(_ *http.Request, trailer http.Header) { delete(trailer, "X-Own") }

type crossing struct{ of *passing }

func (crossing) Forward(func()) bool { return true }

func (crossing) Head(_ int, fields exchange.Fields) {
	if fields.Get("x-show") != "" {
		fields.Header().Set("X-Shown", "yes")
	}
}

func (crossing) Data([]byte)             {}
func (crossing) Trailer(exchange.Fields) {}

func (crossing) Refuse(w http.ResponseWriter, why exchange.Ending) {
	w.WriteHeader(map[exchange.Ending]int{exchange.NoAnswer: http.StatusBadGateway, exchange.Malformed: http.StatusBadRequest, exchange.Cut: http.StatusServiceUnavailable}[why])
}

func (x crossing) End(why exchange.Ending) { x.of.endings <- why }

// A world is a server between clients and an app that answers as a test says.
type world struct {
	*testing.T
	server    *Server
	handler   *passing
	memory    *membudget.Budget
	malformed atomic.Int64
	address   string
	begun     chan int      // the connections of requests that the app read, by number
	ended     chan struct{} // one for each connection to the app that ended
}

// newWorld has the app answer by a function that is given the number of the request, and
// reports whether its connection serves more.
func newWorld(t *testing.T, size int64, app func(c net.Conn, request int) (more bool), change ...func(*Server)) *world {
	t.Helper()
	w := &world{
		T: t, handler: &passing{entered: make(chan *http.Request, 10_000), endings: make(chan exchange.Ending, 10_000)},
		memory: membudget.New(size), begun: make(chan int, 10_000), ended: make(chan struct{}, 10_000),
	}
	behind, front := listenLocal(t), listenLocal(t)
	w.address = front.Addr().String()
	w.server = NewServer(Config{
		Handler: w.handler,
		Dial: func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", behind.Addr().String())
		},
		Host:      "app",
		NoMemory:  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		Malformed: func() { w.malformed.Add(1) },
		Log:       slog.New(slog.DiscardHandler),
	})
	for _, f := range change {
		f(w.server)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = w.server.Serve(front, w.memory.Port(false)) })
	running.Go(func() {
		for n := 1; ; n++ {
			c, err := behind.Accept()
			if err != nil {
				return
			}
			running.Go(func() { w.talk(c, n, app) })
		}
	})
	t.Cleanup(func() {
		w.server.Close()
		behind.Close()
		running.Wait()
		for _, class := range membudget.Classes() {
			if n := w.memory.Taken(class); n != 0 && class != membudget.Connections {
				t.Errorf("%d bytes of %v are not given back", n, class)
			}
		}
	})
	return w
}

func listenLocal(t *testing.T) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(context.WithoutCancel(t.Context()), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (w *world) talk(c net.Conn, n int, answer func(net.Conn, int) bool) {
	defer func() {
		_ = c.Close()
		w.ended <- struct{}{}
	}()
	for in := bufio.NewReader(c); ; {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		w.begun <- n
		if !answer(c, len(w.begun)) {
			return
		}
	}
}

// say answers every request alike.
func say(what string) func(net.Conn, int) bool {
	return func(c net.Conn, _ int) bool {
		_, err := io.WriteString(c, what)
		return err == nil
	}
}

// dial opens a connection, which ends with the test.
func (w *world) dial() (net.Conn, *bufio.Reader) {
	w.Helper()
	c, err := new(net.Dialer).DialContext(w.Context(), "tcp", w.address)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(lateness))
	return c, bufio.NewReader(c)
}

func (w *world) write(c net.Conn, what string) {
	w.Helper()
	if _, err := io.WriteString(c, what); err != nil {
		w.Fatal(err)
	}
}

// read reads a whole answer to a request of that method.
func (w *world) read(in *bufio.Reader, method string) (*http.Response, string) {
	w.Helper()
	res, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		w.Fatal(err)
	}
	return res, string(body)
}

// ask sends a request, and returns the status of the answer.
func (w *world) ask(c net.Conn, in *bufio.Reader, request string) int {
	w.Helper()
	w.write(c, request)
	method, _, _ := strings.Cut(request, " ")
	res, _ := w.read(in, method)
	return res.StatusCode
}

// wantEnd wants the connection to be closed.
func (w *world) wantEnd(in *bufio.Reader) {
	w.Helper()
	if c, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		w.Errorf("read %q, %v, want the end", c, err)
	}
}

func (w *world) until(complaint string, ok func() bool) {
	w.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(lateness); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			w.Fatal(complaint)
		}
	}
}
