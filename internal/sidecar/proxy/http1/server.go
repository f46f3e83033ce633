package http1

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
)

// Config is what a Server is made of.
type Config struct {
	Handler exchange.Handler
	// Dial opens a connection to the app.
	Dial func(ctx context.Context) (net.Conn, error)
	// DialRoomy opens one that may hold membudget.RoomyBytes more; nil: Dial does.
	DialRoomy func(ctx context.Context) (net.Conn, error)
	// Host is sent with requests that name none.
	Host string
	// HTTP2 serves a connection whose client has sent the preface of HTTP/2, and rest behind it.
	HTTP2 func(c net.Conn, m *membudget.Connection, rest []byte)
	// NoMemory answers a request that there is no memory for.
	NoMemory func(w http.ResponseWriter, r *http.Request)
	// Malformed is called for each request that is malformed.
	Malformed func()
	// Memory is what large buffers for bodies and roomy connections are taken from; nil: all are large.
	Memory *membudget.Budget
	Log    *slog.Logger
}

// A Server serves one port. All methods may be called concurrently.
type Server struct {
	cfg     Config
	links   links
	roomy   links
	buffers buffers
	waiting waiting
	leaving atomic.Bool     // connections end with the request they are at
	closing atomic.Bool     // and those between requests end
	rest    time.Duration   // after which an idle connection is parked
	slack   time.Duration   // that this may be late, so that not each request sets a deadline
	idle    time.Duration   // after which it is closed
	ctx     context.Context //nolint:containedctx // of all requests
	abort   context.CancelFunc

	mu      sync.Mutex
	conns   map[*conn]struct{}
	accepts map[net.Listener]struct{}
	running sync.WaitGroup
}

// NewServer returns a server, which has to be closed.
func NewServer(cfg Config) *Server {
	s := &Server{cfg: cfg, buffers: buffers{memory: cfg.Memory}, rest: parkTime, slack: parkSlack, idle: idleTime, conns: map[*conn]struct{}{}, accepts: map[net.Listener]struct{}{}}
	s.ctx, s.abort = context.WithCancel(context.Background())
	return s
}

// Serve accepts connections until the server is drained or closed. Those that port has no memory
// for are answered and closed.
func (s *Server) Serve(l net.Listener, port *membudget.Port) error {
	if !s.listens(l) {
		return l.Close() //nolint:wrapcheck // of the listener
	}
	refuser := framing.NewRefuser()
	for pause := minPause; ; {
		socket, err := l.Accept()
		var failed net.Error
		switch {
		case err == nil:
		case s.closing.Load():
			return nil
		case errors.As(err, &failed) && failed.Temporary(): //nolint:staticcheck // as of too many open files
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
			}
			pause = min(2*pause, maxPause)
			continue
		default:
			return err //nolint:wrapcheck // of the listener
		}
		pause = minPause
		_ = membudget.BoundAccepted(socket) // one that fails is closed by the client
		c := newConn(s, socket)
		var ok bool
		if c.memory, ok = port.Connect(framing.AddressOf(socket), time.Since(process), c); !ok {
			refuser.Refuse(socket)
			continue
		}
		if s.enter(c) {
			go c.serve()
		} else {
			_ = c.Close()
		}
	}
}

// Between failures to accept a connection it is waited a little.
const (
	minPause = 5 * time.Millisecond
	maxPause = time.Second
)

// process is about when the process began; see membudget.
var process = time.Now()

func (s *Server) listens(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return false
	}
	s.accepts[l] = struct{}{}
	return true
}

func (s *Server) enter(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return false
	}
	s.conns[c] = struct{}{}
	s.running.Add(1)
	return true
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.conns[c]; open {
		delete(s.conns, c)
		s.running.Done()
	}
}

// Leave has each connection end with the next request.
func (s *Server) Leave() { s.leaving.Store(true) }

// Drain serves no further connection and no further request, and waits for those in flight until
// ctx is done. Then it cuts them off.
func (s *Server) Drain(ctx context.Context) {
	for _, c := range s.stop() {
		c.endIdle()
	}
	exchange.Drain(ctx, &s.running, s.Close)
}

// Close cuts everything off.
func (s *Server) Close() {
	s.abort()
	for _, c := range s.stop() {
		c.cut()
	}
	s.running.Wait()
	s.links.close()
	s.roomy.close()
	s.waiting.close()
}

// stop accepts nothing more, and returns the connections that are open.
func (s *Server) stop() (open []*conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing.Store(true)
	for l := range s.accepts {
		_ = l.Close()
	}
	clear(s.accepts)
	for c := range s.conns {
		open = append(open, c)
	}
	return open
}
