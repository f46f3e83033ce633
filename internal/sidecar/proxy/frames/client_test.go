package frames

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// echo is an app that answers with the body and the trailer of a request, as they come.
func echo(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("X-Path", r.URL.Path)
	}
	answer := http.NewResponseController(w)
	_ = answer.Flush()
	part := make([]byte, 1000)
	for {
		n, err := r.Body.Read(part)
		_, _ = w.Write(part[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_ = answer.Flush()
	}
	w.Header().Set(http.TrailerPrefix+"X-Sum", r.Trailer.Get("X-Sum"))
}

// serveHTTP2 serves the app of a world by net/http, and counts its connections.
func serveHTTP2(t *testing.T, w *world, handle http.HandlerFunc) (connections *atomic.Int64) {
	t.Helper()
	connections = new(atomic.Int64)
	app := httptest.NewUnstartedServer(handle)
	app.Config.Protocols = new(http.Protocols)
	app.Config.Protocols.SetUnencryptedHTTP2(true)
	app.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	app.Listener.Close()
	app.Listener = w.app
	app.Start()
	t.Cleanup(app.Close)
	return connections
}

// An exchange is what a client has sent over a stream, and got.
type fuzzed struct {
	id           uint32
	sent, got    strings.Builder
	ended, reset bool
	trailer      string
	done         string // how its answer ended
}

// FuzzExchanges draws what a client sends over some streams, and in which frames. The app is one
// that repeats all: each stream that was not reset gets what it has sent, to the last byte.
func FuzzExchanges(f *testing.F) {
	f.Add([]byte{0, 9, 1, 200, 2, 7, 3, 0, 4, 1})
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz"))
	f.Add([]byte{0, 1, 8, 250, 16, 251, 24, 252, 1, 255, 9, 255, 17, 255, 25, 255, 3, 0, 11, 0, 5, 0, 6, 3})
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 400 {
			return
		}
		w := newWorld(t)
		serveHTTP2(t, w, echo)
		window := uint32(5000)
		if len(ops) > 0 {
			window = uint32(ops[0])*16 + 1
		}
		c := w.client(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
		streams, next := [8]*fuzzed{}, uint32(1)
		var all []*fuzzed
		for i := 0; i+1 < len(ops); i += 2 {
			s := streams[ops[i]>>3%8]
			if s == nil || s.ended || s.reset {
				if len(all) == 40 {
					break
				}
				s = &fuzzed{id: next}
				next += 2
				streams[ops[i]>>3%8] = s
				all = append(all, s)
				c.ask(s.id, "POST", "/", false, "trailer", "x-sum", "x-n", itoa(s.id))
			}
			switch n := int(ops[i+1]); ops[i] % 8 {
			case 0, 1, 2:
				part := strings.Repeat(string(rune('a'+n%26)), n*11)
				if s.sent.Len()+len(part) < 6000 { // 40 of them stay below the windows
					s.sent.WriteString(part)
					c.data(s.id, false, part)
				}
			case 3:
				s.ended = true
				c.data(s.id, true, "")
			case 4:
				s.ended, s.trailer = true, itoa(uint32(n))
				c.headers(s.id, true, "x-sum", s.trailer)
			case 5:
				s.reset = true
				c.must(c.framer.WriteRSTStream(s.id, http2.ErrCode(n)))
			case 6:
				c.must(c.framer.WriteWindowUpdate(s.id, uint32(n+1)))
			case 7:
				c.must(c.framer.WriteDataPadded(s.id, false, nil, make([]byte, n)))
			}
		}
		open := map[uint32]*fuzzed{}
		for _, s := range all {
			if s.reset {
				continue
			}
			open[s.id] = s
			c.must(c.framer.WriteWindowUpdate(s.id, 1<<20))
			if !s.ended {
				c.data(s.id, true, "")
			}
		}
		c.must(c.framer.WriteWindowUpdate(0, 1<<20))
		c.must(c.framer.WritePing(false, pingData)) // behind which all was handled
		c.finish(open)
		w.wantWindows()
		for _, s := range all {
			if !s.reset && (s.got.String() != s.sent.String() || s.done != "x-sum="+s.trailer) {
				t.Errorf("stream %d sent %d bytes and the trailer %q, and got %d and %q", s.id, s.sent.Len(), s.trailer, s.got.Len(), s.done)
			}
		}
		c.Close()
	})
}

// finish reads until all streams have ended, and a ping was answered.
func (e *end) finish(open map[uint32]*fuzzed) {
	e.Helper()
	for pong := false; !pong || len(open) > 0; {
		f, err := e.framer.ReadFrame()
		e.must(err)
		s := open[f.Header().StreamID]
		switch f := f.(type) {
		case *http2.DataFrame:
			if s != nil {
				s.got.Write(f.Data())
			}
		case *http2.MetaHeadersFrame:
			if s != nil && f.StreamEnded() {
				s.done = f.Fields[0].Name + "=" + f.Fields[0].Value
				delete(open, s.id)
			}
		case *http2.RSTStreamFrame:
			if s != nil {
				s.done = "reset by " + f.ErrCode.String()
				delete(open, s.id)
			}
		case *http2.PingFrame:
			pong = pong || f.IsAck()
		case *http2.GoAwayFrame:
			e.Fatalf("read %v", f)
		}
	}
}

// FuzzFrames sends frames that mean nothing, or too much. Whatever comes, the connection ends with
// its client, and all is given back.
func FuzzFrames(f *testing.F) {
	ask := appendBlock(nil, 1, []byte{0x82, 0x84, 0x86}, frameBytes, false)
	f.Add(ask)
	f.Add(append(append([]byte{}, ask...), appendReset(nil, 1, http2.ErrCodeCancel)...))
	f.Add(append(appendWindowUpdate(ask, 1, 1<<30), appendGoAway(nil, 0, http2.ErrCodeNo)...))
	f.Add(appendPing(appendSettings(nil, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31}), 0, pingData))
	f.Fuzz(func(t *testing.T, sent []byte) {
		w := newWorld(t)
		serveHTTP2(t, w, echo)
		c := w.client()
		go func() { _, _ = c.Write(sent); _ = c.Conn.(*net.TCPConn).CloseWrite() }()
		began := time.Now()
		_, _ = io.Copy(io.Discard, c.Conn)
		if took := time.Since(began); took > patience/2 {
			t.Errorf("the connection went on for %v", took)
		}
	})
}
