package frames

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// Config is what a Server is made of.
type Config struct {
	Handler exchange.Handler
	// Dial opens a connection to the app.
	Dial func(ctx context.Context) (net.Conn, error)
	// NoMemory answers a request that there is no memory for.
	NoMemory func(w http.ResponseWriter, r *http.Request)
	// HeaderBytes and AnswerHeaderBytes bound the header of a request and that of an answer.
	HeaderBytes, AnswerHeaderBytes uint32
	// Calls are answered in the place of an app, where they are not nil. Then only HeaderBytes and
	// Log of the other fields count.
	Calls *Calls
	Log   *slog.Logger
}

// A Server serves connections of HTTP/2. All methods may be called concurrently.
type Server struct {
	cfg     Config
	leaving atomic.Bool
	ctx     context.Context //nolint:containedctx // of all requests
	abort   context.CancelFunc
	workers workers

	mu      sync.Mutex
	closing bool
	conns   map[*conn]struct{}
	running sync.WaitGroup
}

// NewServer returns a server, which has to be closed.
func NewServer(cfg Config) *Server {
	s := &Server{cfg: cfg, conns: map[*conn]struct{}{}}
	s.ctx, s.abort = context.WithCancel(context.Background())
	s.workers = newWorkers(s.ctx)
	return s
}

// Serve serves a connection whose client has sent the preface, and rest behind it. It returns
// when the connection is closed.
func (s *Server) Serve(socket net.Conn, memory *membudget.Connection, rest []byte) {
	c := newConn(s, socket, memory)
	if !s.enter(c) {
		c.cancel()
		_ = socket.Close()
		return
	}
	defer s.leave(c)
	c.serve(rest)
}

func (s *Server) enter(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.conns[c] = struct{}{}
	s.running.Add(1)
	return true
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.running.Done()
}

// Leave has each connection end with the next request.
func (s *Server) Leave() { s.leaving.Store(true) }

// Drain serves no further connection and no further stream, and waits for those that are open
// until ctx is done. Then it cuts them off.
func (s *Server) Drain(ctx context.Context) {
	for _, c := range s.stop() {
		go func() { // a write may take its time
			c.mu.Lock()
			defer c.mu.Unlock()
			c.goAway(http2.ErrCodeNo)
			c.flush()
		}()
	}
	exchange.Drain(ctx, &s.running, s.Close)
}

// Close cuts everything off.
func (s *Server) Close() {
	s.abort()
	for _, c := range s.stop() {
		c.mu.Lock()
		c.cut()
		c.mu.Unlock()
	}
	s.running.Wait()
	s.workers.running.Wait()
}

// stop returns the connections that are open.
func (s *Server) stop() (open []*conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	for c := range s.conns {
		open = append(open, c)
	}
	return open
}
