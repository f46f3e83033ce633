package exchange

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weir-dev/weir/internal/sidecar/proxy/framing/framingtest"
)

// tokenBytes is the length of the name of an exchange in a target.
const tokenBytes = 12

// An App answers the requests of exchanges as their plans say.
type App struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu   sync.Mutex
	next int
	runs map[string]*run
	open map[net.Conn]bool
}

// Listen returns an App that serves on a port of its own until it is closed.
func Listen() (*App, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	a := &App{listener: listener, runs: map[string]*run{}, open: map[net.Conn]bool{}}
	a.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			a.serving.Go(func() { a.serve(conn) })
		}
	})
	return a, nil
}

// Address is where it listens.
func (a *App) Address() string { return a.listener.Addr().String() }

// Close closes all connections and returns when they are.
func (a *App) Close() {
	_ = a.listener.Close()
	a.mu.Lock()
	for conn := range a.open {
		_ = conn.Close()
	}
	a.mu.Unlock()
	a.serving.Wait()
}

// Run plays an exchange, whose client connects to address, and returns what was seen. It
// returns within half a minute.
func (a *App) Run(ctx context.Context, p *Plan, address string) (Seen, error) {
	a.mu.Lock()
	a.next++
	token := fmt.Sprintf("%0*d", tokenBytes, a.next)
	r, stop := newRun(ctx, p, token)
	a.runs[token] = r
	a.mu.Unlock()
	defer stop()
	err := r.client(address)
	r.await("the app's side of a request", func() bool { return r.serving == 0 && r.explained() })
	a.mu.Lock()
	delete(a.runs, token)
	a.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen, err
}

func (a *App) serve(conn net.Conn) {
	a.mu.Lock()
	a.open[conn] = true
	a.mu.Unlock()
	defer func() {
		_ = conn.Close()
		a.mu.Lock()
		delete(a.open, conn)
		a.mu.Unlock()
	}()
	in := bufio.NewReader(conn)
	for {
		m, err := reader{in: in}.head()
		if err != nil {
			return
		}
		r, i := a.find(m)
		if r == nil {
			return
		}
		if !r.serve(conn, in, m, i) {
			a.lose(in)
			return
		}
	}
}

// lose notes a request that comes over a connection that this side has ended. Its sender has
// not seen the end yet, and another client of a proxy may have sent it.
func (a *App) lose(in *bufio.Reader) {
	m, err := reader{in: in}.head()
	if err != nil {
		return
	}
	if r, i := a.find(m); r != nil {
		r.note(func() { r.seen.Lost[i]++ })
	}
}

// find returns the exchange that a request is of, nil when that is over.
func (a *App) find(m *Message) (*run, int) {
	path := strings.Split(m.word(1), "/")
	for j, word := range path {
		if len(word) == tokenBytes && j+1 < len(path) {
			number, _, _ := strings.Cut(path[j+1], "?")
			i, err := strconv.Atoi(number)
			a.mu.Lock()
			r := a.runs[word]
			a.mu.Unlock()
			if err == nil && r != nil && i < len(r.plan.requests) {
				return r, i
			}
		}
	}
	return nil, 0
}

// serve reads the rest of a request, answers it, and reports whether the connection goes on.
func (r *run) serve(conn net.Conn, in *bufio.Reader, m *Message, i int) bool {
	r.note(func() {
		r.seen.Requests[i] = append(r.seen.Requests[i], m)
		r.serving++
	})
	s := &side{run: r, conn: conn, request: m, i: i, plan: &r.plan.requests[i]}
	read := make(chan struct{})
	go func() {
		defer close(read)
		err := reader{in: in, note: r.note}.body(m, "")
		if err == nil && s.plan.answer.start == atLeave {
			_, err = in.Peek(1)
		}
		if err != nil {
			r.note(func() { s.gone = true })
		}
	}()
	goesOn := s.play() && m.word(2) != "HTTP/1.0" && !slices.ContainsFunc(m.Fields, isClose)
	if !goesOn {
		s.end()
	}
	<-read
	r.note(func() { r.serving-- })
	return goesOn && m.State == Complete
}

// A side is the app's side of one request.
type side struct {
	*run
	conn    net.Conn
	request *Message
	i       int
	plan    *request
	gone    bool // the other side has ended the connection
}

// isClose reports whether a field ends a connection.
func isClose(f framingtest.Field) bool {
	return strings.EqualFold(f.Name, "Connection") && strings.EqualFold(f.Value, "close")
}
