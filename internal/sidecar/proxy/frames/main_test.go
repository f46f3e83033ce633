package frames

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long what is to happen may take on a busy machine.
const patience = 20 * time.Second

// A testHandler admits all but what is under /refused, and has what is under /wait wait.
type testHandler struct {
	on      chan struct{} // closed: nothing waits any more
	stuck   chan struct{} // what is under /stuck waits for its end, also when its client has left
	waiting chan string   // the paths of requests that wait, and of those whose wait was ended behind an !
	entered chan *http.Request
	mu      sync.Mutex
	all     []*crossing
}

func newHandler() *testHandler {
	return &testHandler{on: make(chan struct{}), waiting: make(chan string, 2000), entered: make(chan *http.Request, 2000)}
}

// Enter implements exchange.Handler.
func (g *testHandler) Enter(w http.ResponseWriter, r *http.Request) exchange.Exchange {
	switch {
	case r.URL.Path == "/refused":
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, "too many")
		return nil
	case r.URL.Path == "/aborted":
		panic(http.ErrAbortHandler)
	case r.URL.Path == "/stuck":
		<-g.stuck
	case r.URL.Path == "/defect":
		panic("a defect")
	case strings.HasPrefix(r.URL.Path, "/wait"):
		g.waiting <- r.URL.Path
		select {
		case <-g.on:
		case <-r.Context().Done():
			g.waiting <- "!" + r.URL.Path
			panic(http.ErrAbortHandler)
		}
	}
	x := &crossing{forwarded: make(chan struct{}), ended: make(chan exchange.Ending, 2), late: r.URL.Path == "/late"}
	g.mu.Lock()
	g.all = append(g.all, x)
	g.mu.Unlock()
	g.entered <- r
	return x
}

// Trailer implements exchange.Handler.
func (g *testHandler) Trailer(_ *http.Request, trailer http.Header) { trailer.Del("X-Own") }

func (g *testHandler) last() *crossing {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all[len(g.all)-1]
}

// A crossing notes what becomes of a request.
type crossing struct {
	forwarded chan struct{}
	cut       func()
	late      bool // it is not forwarded
	ended     chan exchange.Ending
	status    int
	body      int
	trailer   string
}

// Forward implements exchange.Exchange.
func (x *crossing) Forward(cut func()) bool {
	x.cut = cut
	close(x.forwarded)
	return !x.late
}

// Head implements exchange.Exchange.
func (x *crossing) Head(status int, fields exchange.Fields) {
	x.status = status
	if fields.Get("x-show") != "" {
		fields.Header().Set("X-Shown", "yes")
	}
}

// Data implements exchange.Exchange.
func (x *crossing) Data(p []byte) { x.body += len(p) }

// Trailer implements exchange.Exchange.
func (x *crossing) Trailer(fields exchange.Fields) { x.trailer = fields.Get("grpc-status") }

// Refuse implements exchange.Exchange.
func (x *crossing) Refuse(w http.ResponseWriter, why exchange.Ending) {
	w.WriteHeader(map[exchange.Ending]int{exchange.NoAnswer: http.StatusBadGateway, exchange.Malformed: http.StatusBadRequest, exchange.Cut: http.StatusServiceUnavailable}[why])
}

// End implements exchange.Exchange.
func (x *crossing) End(why exchange.Ending) { x.ended <- why }

// wantEnd waits until the exchange has ended, and only once.
func (x *crossing) wantEnd(t *testing.T, want exchange.Ending) {
	t.Helper()
	select {
	case got := <-x.ended:
		if got != want {
			t.Errorf("the exchange ended by %d, want %d", got, want)
		}
	case <-time.After(patience):
		t.Fatal("the exchange goes on")
	}
	if len(x.ended) > 0 {
		t.Error("the exchange ended twice")
	}
}

// A world is a server between scripted clients and a scripted app.
type world struct {
	*testing.T
	server  *Server
	handler *testHandler
	budget  *membudget.Budget
	app     net.Listener
	front   net.Listener
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldIn(t, membudget.New(1<<30))
}

func newWorldIn(t *testing.T, budget *membudget.Budget) *world {
	t.Helper()
	return newWorldOf(t, budget, nil)
}

// newWorldOf returns one without an app where there are calls.
func newWorldOf(t *testing.T, budget *membudget.Budget, calls *Calls) *world {
	t.Helper()
	w := &world{T: t, handler: newHandler(), budget: budget, app: listenLocal(t), front: listenLocal(t)}
	target := w.app.Addr().String()
	w.server = NewServer(Config{
		Handler: w.handler,
		Dial:    func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", target) },
		NoMemory: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		HeaderBytes: 32 << 10, AnswerHeaderBytes: 1 << 20, Log: slog.New(slog.DiscardHandler), Calls: calls,
	})
	port := budget.Port(false)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			socket, err := w.front.Accept()
			if err != nil {
				return
			}
			memory, ok := port.Connect(socket.RemoteAddr().(*net.TCPAddr).AddrPort().Addr(), 1, holder{socket})
			if !ok {
				socket.Close()
				continue
			}
			serving.Go(func() {
				defer memory.Close()
				if _, err := io.ReadFull(socket, make([]byte, len(http2.ClientPreface))); err == nil {
					w.server.Serve(socket, memory, nil)
				}
				socket.Close()
			})
		}
	})
	t.Cleanup(func() {
		w.front.Close()
		w.app.Close()
		w.server.Close()
		serving.Wait()
		for class := range membudget.Classes() {
			if n := budget.Taken(membudget.Class(class)); n != 0 {
				t.Errorf("%d bytes of %v are not given back", n, membudget.Class(class))
			}
		}
	})
	return w
}

// A holder is a connection that gives way.
type holder struct{ net.Conn }

// Pending implements membudget.Holder.
func (holder) Pending() bool { return false }

// Yield implements membudget.Holder.
func (h holder) Yield(bool) { h.Close() }

// eventually waits until something is so.
func eventually(t *testing.T, complaint string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal(complaint)
		}
	}
}

// any reports whether a connection is in a state.
func (w *world) any(state func(c *conn) bool) bool {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	for c := range w.server.conns {
		c.mu.Lock()
		is := state(c)
		c.mu.Unlock()
		if is {
			return true
		}
	}
	return false
}

// stuck waits until a connection has been writing for long while no more was sent.
func (w *world) stuck(sent *atomic.Int64, writes func(c *conn) bool) {
	w.Helper()
	before, still := int64(-1), 0
	eventually(w.T, "everything is read", func() bool {
		now := sent.Load()
		if still++; now != before || !w.any(writes) {
			before, still = now, 0
		}
		return still > 20
	})
}

// wantWindows sees that the windows of all connections, which hold no stream any more, are as at
// first: nothing was given back twice or not at all.
func (w *world) wantWindows() {
	w.Helper()
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	for c := range w.server.conns {
		c.mu.Lock()
		if n := c.client.received + c.client.owed; n != membudget.WindowsBytes || len(c.streams) > 0 {
			w.Errorf("the client's window is %d, with %d streams", n, len(c.streams))
		}
		for _, a := range c.apps {
			if n := a.peer.received + a.peer.owed; a.ready && n != appWindow {
				w.Errorf("the app's window is %d less than at first", appWindow-n)
			}
		}
		c.mu.Unlock()
	}
}

func listenLocal(t *testing.T) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// An end is the far end of a connection: a client, or an app.
type end struct {
	*testing.T
	net.Conn
	framer *http2.Framer
	enc    *hpack.Encoder
	block  bytes.Buffer
}

func newEnd(t *testing.T, conn net.Conn) *end {
	t.Helper()
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	e := &end{T: t, Conn: conn, framer: http2.NewFramer(conn, conn)}
	e.framer.ReadMetaHeaders = hpack.NewDecoder(4<<10, nil)
	e.enc = hpack.NewEncoder(&e.block)
	return e
}

// client opens a connection.
func (w *world) client(settings ...http2.Setting) *end {
	w.Helper()
	conn, err := new(net.Dialer).DialContext(w.Context(), "tcp", w.front.Addr().String())
	if err != nil {
		w.Fatal(err)
	}
	e := newEnd(w.T, conn)
	_, err = io.WriteString(conn, http2.ClientPreface)
	e.must(err)
	e.must(e.framer.WriteSettings(settings...))
	return e
}

// accept takes a connection of the sidecar to the app.
func (w *world) accept(settings ...http2.Setting) *end {
	w.Helper()
	conn, err := w.app.Accept()
	if err != nil {
		w.Fatal(err)
	}
	e := newEnd(w.T, conn)
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(conn, preface); err != nil || string(preface) != http2.ClientPreface {
		w.Fatalf("the app read %q, %v", preface, err)
	}
	e.must(e.framer.WriteSettings(settings...))
	return e
}

func (e *end) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// headers sends a header block of names and values.
func (e *end) headers(stream uint32, ends bool, fields ...string) {
	e.Helper()
	e.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		e.must(e.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}))
	}
	_, err := e.Write(appendBlock(nil, stream, e.block.Bytes(), frameBytes, ends))
	e.must(err)
}

// ask sends the head of a request.
func (e *end) ask(stream uint32, method, path string, ends bool, fields ...string) {
	e.Helper()
	e.headers(stream, ends, append([]string{":method", method, ":scheme", "http", ":path", path, ":authority", "app.example"}, fields...)...)
}

func (e *end) data(stream uint32, ends bool, data string) {
	e.Helper()
	for len(data) > frameBytes {
		e.must(e.framer.WriteData(stream, false, []byte(data[:frameBytes])))
		data = data[frameBytes:]
	}
	e.must(e.framer.WriteData(stream, ends, []byte(data)))
}

// read returns the next frame but for settings and windows, in words.
func (e *end) read() string {
	e.Helper()
	for {
		f, err := e.framer.ReadFrame()
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
			return "EOF"
		}
		e.must(err)
		if words := inWords(f); words != "" {
			return words
		}
	}
}

// want reads those frames.
func (e *end) want(frames ...string) {
	e.Helper()
	for _, want := range frames {
		if got := e.read(); got != want {
			e.Fatalf("read %q, want %q", got, want)
		}
	}
}

// inWords describes a frame. Settings and windows are left out.
func inWords(f http2.Frame) string {
	id := " " + itoa(f.Header().StreamID)
	ends := ""
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		if f.StreamEnded() {
			ends = " END"
		}
		all := []string{}
		for _, one := range f.Fields {
			switch one.Name {
			case ":scheme", ":authority", "date":
			default:
				all = append(all, one.Name+"="+one.Value)
			}
		}
		return "HEADERS" + id + " " + strings.Join(all, " ") + ends
	case *http2.DataFrame:
		if f.StreamEnded() {
			ends = " END"
		}
		data := string(f.Data())
		if len(data) > 40 {
			data = itoa(uint32(len(data))) + " bytes"
		}
		return "DATA" + id + " " + data + ends
	case *http2.RSTStreamFrame:
		return "RST" + id + " " + f.ErrCode.String()
	case *http2.GoAwayFrame:
		return "GOAWAY " + itoa(f.LastStreamID) + " " + f.ErrCode.String()
	case *http2.PingFrame:
		if f.IsAck() {
			return "PONG"
		}
		return "PING"
	}
	return ""
}

func itoa(n uint32) string {
	digits := []byte{}
	for ; n > 0 || len(digits) == 0; n /= 10 {
		digits = append(digits, byte('0'+n%10))
	}
	slices.Reverse(digits)
	return string(digits)
}
