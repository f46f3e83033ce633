package frames

import (
	"context"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

const (
	maxStreams = 250
	// maxRefused is how many streams in a row may be refused while others that the client has reset
	// are still decided about. A client that goes on does nothing else.
	maxRefused  = 4 * maxStreams
	pingAfter   = 30 * time.Second // of silence
	pingWait    = 15 * time.Second
	idleTime    = 75 * time.Second
	appIdleTime = time.Minute
	// stalledTime is how long a peer may take to read something.
	stalledTime = 30 * time.Second
	// lastTime is how long a client has to close a connection that has ended.
	lastTime = time.Second
)

// A conn is a connection of a client.
type conn struct {
	server *Server
	memory *membudget.Connection
	remote string
	ctx    context.Context //nolint:containedctx // of its requests
	cancel context.CancelFunc
	began  time.Time
	socket net.Conn

	mu        sync.Mutex
	client    *peer
	streams   map[uint32]*stream // open ones
	last      uint32             // that was opened
	lingering int                // that the client has reset, and that are decided about
	refused   int                // in a row, for these
	settled   bool               // the client's first settings have come
	away      bool               // GOAWAY was sent: last is the last stream
	failed    bool               // with an error: nothing more is handled
	closed    bool
	resets    [32]uint32 // the streams that were reset last, whose client may not know yet
	reset1    int        // the next in there
	apps      []*app
	waiting   []*stream // for a connection to the app
	soon      bool      // what is there is about to be sent; see flushSoon
	full      bool      // the app took no further connection since a stream ended
	running   sync.WaitGroup

	watch  *time.Timer
	heard  time.Duration // when something came last
	idle   time.Duration // since when no stream is open
	pinged time.Duration // 0: no ping is out
	until  time.Duration // when the connection is closed; 0: it is not
}

var pingData = [8]byte{'w', 'e', 'i', 'r'}

// newConn returns a connection whose first frames are to be sent.
func newConn(s *Server, socket net.Conn, memory *membudget.Connection) *conn {
	c := &conn{
		server: s, memory: memory, remote: socket.RemoteAddr().String(), began: time.Now(), socket: socket, streams: map[uint32]*stream{},
	}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	p := newPeer(&c.mu)
	c.client, p.unacked = p, 1
	p.out = appendSettings(p.buffer(),
		http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: maxStreams},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: membudget.WindowBytes},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: s.cfg.HeaderBytes})
	p.out = appendWindowUpdate(p.out, 0, membudget.WindowsBytes-firstWindow)
	p.received = membudget.WindowsBytes
	return c
}

// serve serves the connection to its end. rest follows the preface.
func (c *conn) serve(rest []byte) {
	defer c.running.Wait()
	defer c.end()
	c.mu.Lock()
	c.client.open(c.socket, rest, c.server.cfg.HeaderBytes)
	c.watch = time.AfterFunc(pingAfter, c.look)
	if c.until > 0 { // it is drained already
		c.watch.Reset(lastTime)
	}
	c.flush()
	c.mu.Unlock()
	c.read()
}

// end closes everything.
func (c *conn) end() {
	c.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.watch.Stop()
	c.cut()
}

// cut closes the connection and those to the app, so that no write to either is waited for.
func (c *conn) cut() {
	c.drop()
	for _, s := range c.streams {
		s.abandon()
	}
	c.waiting = nil
	for _, a := range c.apps {
		a.close()
	}
	c.apps = nil
}

// flush sends what is there: first to the app, which is near.
func (c *conn) flush() {
	for again := true; again; {
		again = false
		for _, a := range c.apps {
			if a.peer.wants() {
				if err := a.peer.flush(); err != nil {
					a.fail()
				}
				again = true
				break // c.apps may be another by now
			}
		}
		if !again && c.client.wants() {
			if err := c.client.flush(); err != nil {
				c.drop()
			}
			again = true
		}
	}
}

// drop closes the connection. Its reader notices.
func (c *conn) drop() {
	c.client.closed = true
	c.client.room.Broadcast()
	_ = c.socket.Close()
}

// goAway says that no further stream is served. With an error the connection ends.
func (c *conn) goAway(code http2.ErrCode) {
	if c.failed || c.away && code == http2.ErrCodeNo {
		return
	}
	c.away = true
	c.client.out = appendGoAway(c.client.buffer(), c.last, code)
	if code != http2.ErrCodeNo {
		c.failed = true
		for _, s := range c.streams {
			s.abandon()
		}
	}
	c.settle()
}

// settle ends a connection that has nothing more to do, once its client has had time to close it.
func (c *conn) settle() {
	if !c.away || len(c.streams) > 0 || c.until > 0 || c.closed {
		return
	}
	if c.until = c.now() + lastTime; c.watch != nil {
		c.watch.Reset(lastTime)
	}
}

// reset resets a stream of the client.
func (c *conn) reset(id uint32, code http2.ErrCode) {
	c.client.out = appendReset(c.client.buffer(), id, code)
	c.resets[c.reset1] = id
	c.reset1 = (c.reset1 + 1) % len(c.resets)
}

// close forgets a stream.
func (c *conn) close(s *stream) {
	if s.over {
		return
	}
	s.over = true
	if s.cancel != nil {
		s.cancel()
	}
	s.finish(exchange.Left)
	s.up.drop()
	s.down.drop()
	delete(c.streams, s.id)
	if s.deciding {
		c.lingering++
	} else {
		s.taken.Done()
	}
	if len(c.streams) == 0 {
		c.idle = c.now()
		c.memory.Idle(time.Since(process))
		c.settle()
	}
}

// abandon ends a stream whose client is gone.
func (s *stream) abandon() {
	s.finish(exchange.Left)
	s.leave(http2.ErrCodeCancel)
	s.conn.close(s)
}

// process is about when the process began; see membudget.
var process = time.Now()

// endsIdle reports whether the connection holds no stream, and is to end if that goes on. One for
// calls stays: a call that comes as it ends would have no answer.
func (c *conn) endsIdle() bool { return len(c.streams) == 0 && c.server.cfg.Calls == nil }

// now is never 0.
func (c *conn) now() time.Duration { return time.Since(c.began) + 1 }

// look does what is due.
func (c *conn) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	now := c.now()
	switch {
	case c.until > 0 && now >= c.until, c.pinged > 0 && now >= c.pinged+pingWait:
		c.drop()
		return
	case c.until == 0 && c.endsIdle() && now >= c.idle+idleTime:
		c.goAway(http2.ErrCodeNo)
	case c.pinged == 0 && now >= c.heard+pingAfter:
		c.pinged = now
		c.client.out = appendPing(c.client.buffer(), 0, pingData)
	}
	due := c.heard + pingAfter
	if c.pinged > 0 {
		due = c.pinged + pingWait
	}
	if c.endsIdle() {
		due = min(due, c.idle+idleTime)
	}
	if c.until > 0 {
		due = c.until
	}
	for _, a := range c.apps {
		a.look(now)
	}
	c.watch.Reset(max(due-now, time.Millisecond))
	c.running.Go(func() { // a write may take its time
		c.mu.Lock()
		defer c.mu.Unlock()
		c.flush()
	})
}
