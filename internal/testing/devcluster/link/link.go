// Package link is a way to a TCP server that can be long, and that can be cut: the
// network between two regions, on one machine.
package link

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Link carries connections to a server. Its methods may be called concurrently.
type Link struct {
	listener net.Listener
	server   atomic.Pointer[string]
	delay    atomic.Int64 // nanoseconds, each way

	mu    sync.Mutex
	cut   bool
	open  map[net.Conn]struct{}
	lives sync.WaitGroup
}

// Open opens a link to a server, host:port, on a free port of the loopback address.
// It has to be closed.
func Open(server string) (*Link, error) { return OpenAt("127.0.0.1", server) }

// OpenAt is Open on a free port of another address of this machine.
func OpenAt(host, server string) (*Link, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0")) //nolint:noctx // returns at once
	if err != nil {
		return nil, err
	}
	l := &Link{listener: listener, open: map[net.Conn]struct{}{}}
	l.SetServer(server)
	l.lives.Go(l.accept)
	return l, nil
}

// Address is what clients connect to instead of the server.
func (l *Link) Address() string { return l.listener.Addr().String() }

// SetServer changes where new connections lead.
func (l *Link) SetServer(server string) { l.server.Store(&server) }

// SetDelay sets how long bytes are on the way, in each direction. It is half of the
// wanted round trip.
func (l *Link) SetDelay(d time.Duration) { l.delay.Store(int64(d)) }

// Cut ends every connection, and takes none until Heal.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	l.reset()
}

// Reset ends every connection, and takes new ones.
func (l *Link) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reset()
}

func (l *Link) reset() {
	for c := range l.open {
		_ = c.Close()
	}
}

// Heal lets connections through again.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

// Close cuts the link for good and waits until nothing of it runs any more.
func (l *Link) Close() {
	_ = l.listener.Close()
	l.Cut()
	l.lives.Wait()
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.lives.Go(func() { l.serve(client) })
	}
}

// serve carries one connection until one of its ends closes it.
func (l *Link) serve(client net.Conn) {
	defer client.Close()
	if !l.add(client) {
		return
	}
	defer l.remove(client)
	server, err := net.Dial("tcp", *l.server.Load()) //nolint:noctx // ends with the connection
	if err != nil {
		return
	}
	defer server.Close()
	if !l.add(server) {
		return
	}
	defer l.remove(server)
	var back sync.WaitGroup
	back.Go(func() {
		l.carry(client, server)
		_ = client.Close()
	})
	l.carry(server, client)
	_ = server.Close()
	back.Wait()
}

// add notes a connection, or reports that the link is cut.
func (l *Link) add(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return false
	}
	l.open[c] = struct{}{}
	return true
}

func (l *Link) remove(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}

// A parcel is bytes that arrive at an instant.
type parcel struct {
	bytes []byte
	due   time.Time
}

// onTheWay bounds the parcels of one direction, each of at most 32 KiB.
const onTheWay = 256

// carry copies from one end to the other, each byte after the delay.
func (l *Link) carry(to io.Writer, from io.Reader) {
	parcels := make(chan parcel, onTheWay)
	var arrivals sync.WaitGroup
	arrivals.Go(func() {
		for p := range parcels {
			<-time.After(time.Until(p.due))
			if _, err := to.Write(p.bytes); err != nil {
				continue // the reader ends soon, too
			}
		}
	})
	defer arrivals.Wait()
	defer close(parcels)
	for {
		buffer := make([]byte, 32<<10)
		n, err := from.Read(buffer)
		if n > 0 {
			parcels <- parcel{buffer[:n], time.Now().Add(time.Duration(l.delay.Load()))}
		}
		if err != nil {
			return // io.EOF, or the connection was closed under it
		}
	}
}
