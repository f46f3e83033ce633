package framingtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
)

// Answer is what an App answers requests with.
const Answer = "HTTP/1.1 204 No Content\r\n\r\n"

// Switching is what it answers requests for a WebSocket under Tunnels with.
const Switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

// Tunnels is the path of requests that an App opens a tunnel for. It declines all others.
const Tunnels = "/tunnel"

const refusal = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

// An App reads what it is sent as strictly as can be, and answers each request.
type App struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]bool
	seen Seen
}

// Seen is what an App was sent.
type Seen struct {
	Requests []Message
	Tunnel   string // what came through tunnels
	Broken   string // the beginning of what it could not read, empty when it could read all
}

// Listen returns an App that serves on a port of its own until it is closed.
func Listen() (*App, error) { return ListenAt("127.0.0.1:0") }

// ListenAt returns an App that serves at an address until it is closed.
func ListenAt(address string) (*App, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	a := &App{listener: listener, open: map[net.Conn]bool{}}
	a.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			a.mu.Lock()
			a.open[conn] = true
			a.mu.Unlock()
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
	a.disconnect()
	a.serving.Wait()
}

// Take returns what was sent since the last call. It closes all connections, so that nothing
// that comes later is taken for a part of it.
func (a *App) Take() Seen {
	a.disconnect()
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := a.seen
	a.seen = Seen{}
	return seen
}

func (a *App) disconnect() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for conn := range a.open {
		_ = conn.Close()
	}
}

func (a *App) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		a.mu.Lock()
		delete(a.open, conn)
		a.mu.Unlock()
	}()
	var got []byte
	buffer := make([]byte, 4<<10)
	for {
		n, err := conn.Read(buffer)
		got = append(got, buffer[:n]...)
		for more := true; more; {
			var on bool
			if got, more, on = a.next(conn, got); !on {
				finish(conn)
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// next reads a request from the bytes that came over a connection. It reports whether there
// was one, and whether the connection goes on.
func (a *App) next(conn net.Conn, got []byte) (rest []byte, more, on bool) {
	m, rest, v := Read(got)
	switch v {
	case Malformed:
		a.note(func(s *Seen) { s.Broken = string(bytes.ToValidUTF8(got[:min(len(got), 500)], []byte("?"))) })
		_, _ = io.WriteString(conn, refusal)
		return nil, false, false
	case Incomplete:
		return got, false, true
	case Complete:
	}
	a.note(func(s *Seen) { s.Requests = append(s.Requests, m) })
	if m.Target == Tunnels && strings.EqualFold(strings.Join(m.Values("Upgrade"), ","), "websocket") {
		a.tunnel(conn, rest)
		return nil, false, false
	}
	_, err := io.WriteString(conn, Answer)
	return rest, len(rest) > 0, err == nil && !m.Last()
}

// tunnel repeats what comes until the client has sent all.
func (a *App) tunnel(conn net.Conn, first []byte) {
	_, _ = io.WriteString(conn, Switching)
	var all bytes.Buffer
	_, _ = io.Copy(conn, io.TeeReader(io.MultiReader(bytes.NewReader(first), conn), &all))
	a.note(func(s *Seen) { s.Tunnel += all.String() })
}

// finish lets the peer read what it was sent: closing at once would reset the connection when
// more came than was read.
func finish(conn net.Conn) {
	if half, ok := conn.(*net.TCPConn); ok && half.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
}

func (a *App) note(f func(*Seen)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.seen)
}
