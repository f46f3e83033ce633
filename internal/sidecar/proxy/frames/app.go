package frames

import (
	"errors"
	"io"
	"math"
	"slices"
	"time"

	"golang.org/x/net/http2"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

const (
	// appWindow is what is received of all answers over a connection: the windows of its streams
	// bound it.
	appWindow = 1 << 30
	lastID    = 1<<31 - 1
)

// An app is a connection to the app.
type app struct {
	conn     *conn
	peer     *peer
	streams  map[uint32]*stream
	next     uint32 // stream
	most     int64  // streams at a time
	ready    bool   // its settings have come
	draining bool   // it takes no more streams
	answered bool   // it has answered a request
	idle     time.Duration

	// Streams that were reset count until the app answers a ping: it may still be at them.
	resets, pinged int
	quiet          bool // nothing of an answer has come since the last ping, which apps count as abuse
}

// dial opens a connection to the app.
func (c *conn) dial() {
	a := &app{conn: c, peer: newPeer(&c.mu), streams: map[uint32]*stream{}, next: 1, most: math.MaxInt64}
	c.apps = append(c.apps, a)
	c.running.Go(a.run)
}

// run reads from the connection, to its end.
func (a *app) run() {
	c := a.conn
	socket, err := c.server.cfg.Dial(c.ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		a.fail()
		c.flush()
		return
	}
	if a.peer.closed {
		_ = socket.Close()
		return
	}
	p := a.peer
	p.open(socket, nil, c.server.cfg.AnswerHeaderBytes)
	p.out = append(p.buffer(), http2.ClientPreface...)
	p.out = appendSettings(p.out,
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: answerWindow},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: c.server.cfg.AnswerHeaderBytes})
	p.out = appendWindowUpdate(p.out, 0, appWindow-firstWindow)
	p.received = appWindow
	c.flush()
	for !p.closed {
		c.mu.Unlock()
		f, err := p.framer.ReadFrame()
		c.mu.Lock()
		if p.closed {
			return
		}
		if err == nil {
			err = a.handle(f)
		}
		if !a.answerTo(err) {
			a.fail()
		}
		if p.closed || !p.arrived() {
			c.flush()
		}
		p.throttle(outBytes)
		c.client.throttle(otherBytes)
		p.saw(f, len(a.streams) == 0)
	}
}

// answerTo answers an error, and reports whether the connection goes on.
func (a *app) answerTo(err error) bool {
	var ofStream http2.StreamError
	switch {
	case err == nil:
		return true
	case errors.As(err, &ofStream):
		if s := a.streams[ofStream.StreamID]; s != nil {
			a.reset(ofStream.StreamID, ofStream.Code)
			a.forget(s)
			s.broken(http2.ErrCodeInternal)
		}
		return true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
	default:
		a.conn.server.cfg.Log.Debug("a connection to the app has failed", "error", err)
	}
	return false
}

// fail ends the connection. Its requests go over another one where that does no harm.
func (a *app) fail() {
	a.close()
	for _, s := range a.streams {
		a.forget(s)
		s.lose(false)
	}
	if c := a.conn; a.ready || slices.ContainsFunc(c.apps, func(a *app) bool { return !a.draining }) {
		c.full = !a.ready
		c.place()
	} else {
		c.giveUp()
	}
}

// giveUp answers the requests that wait for a connection.
func (c *conn) giveUp() {
	waiting := c.waiting
	c.waiting = nil
	for _, s := range waiting {
		if !s.over {
			s.refuse(exchange.NoAnswer)
		}
	}
}

// close closes the connection.
func (a *app) close() {
	a.peer.closed, a.draining = true, true
	a.peer.room.Broadcast()
	if a.peer.conn != nil {
		_ = a.peer.conn.Close()
	}
	for i, other := range a.conn.apps {
		if other == a {
			a.conn.apps = append(a.conn.apps[:i:i], a.conn.apps[i+1:]...)
			break
		}
	}
}

// place sends requests that wait for a connection.
func (c *conn) place() {
	for len(c.waiting) > 0 && !c.closed {
		s := c.waiting[0]
		if s.over {
			c.waiting = c.waiting[1:]
			continue
		}
		waits := c.full
		var free *app
		for _, a := range c.apps {
			waits = waits || !a.ready || a.most == 0 && !a.draining // another would take no stream either
			if free == nil && a.takes() {
				free = a
			}
		}
		switch {
		case free != nil:
			c.waiting = c.waiting[1:]
			free.open(s)
		case waits:
			return
		default:
			c.dial()
			return
		}
	}
	if len(c.waiting) == 0 {
		c.waiting = nil
	}
}

// takes reports whether the app takes another stream.
func (a *app) takes() bool {
	return a.ready && !a.draining && int64(len(a.streams)+a.resets+a.pinged) < a.most && a.next < lastID
}

// open sends a request.
func (a *app) open(s *stream) {
	s.app, s.appID = a, a.next
	s.reused = a.answered
	s.tries++
	a.next += 2
	a.streams[s.appID] = s
	s.up.to, s.up.toID, s.up.window, s.up.sent, s.up.waits = a.peer, s.appID, a.peer.initial, false, false
	s.down.from, s.down.fromID, s.down.received, s.down.owed = a.peer, s.appID, answerWindow, 0
	ends := s.up.ended && len(s.up.queue) == 0 && s.up.trailer == nil
	a.peer.headers(s.appID, s.fields, ends)
	if ends {
		s.up.sent = true
		return
	}
	s.up.pump()
}

// forget takes a stream from the connection.
func (a *app) forget(s *stream) {
	delete(a.streams, s.appID)
	s.app, a.conn.full = nil, false
	if a.idle = a.conn.now(); a.draining && len(a.streams) == 0 && !a.peer.closed {
		a.close()
	}
}

// reset resets a stream.
func (a *app) reset(id uint32, code http2.ErrCode) {
	if a.peer.closed {
		return
	}
	a.peer.out = appendReset(a.peer.buffer(), id, code)
	if a.quiet {
		return
	}
	if a.resets++; a.pinged == 0 {
		a.ping()
	}
}

func (a *app) ping() {
	a.resets, a.pinged, a.quiet = 0, a.resets, true
	a.peer.out = appendPing(a.peer.buffer(), 0, pingData)
}

// pong says that the app has seen the resets before the last ping.
func (a *app) pong() {
	switch a.pinged = 0; {
	case a.resets > 0 && !a.quiet:
		a.ping()
	default:
		a.resets = 0
	}
	a.conn.place()
}

// look closes a connection that has been idle for long.
func (a *app) look(now time.Duration) {
	if a.ready && len(a.streams) == 0 && now >= a.idle+appIdleTime {
		a.close()
	}
}
