package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A flood opens connections and keeps them.
type flood struct {
	name        string
	connections int
	addresses   int
	say         func(t *testing.T, c net.Conn) // until the connection is closed, or all was said
}

var floods = []flood{
	{"idle connections", 10_000, 1, func(_ *testing.T, c net.Conn) {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		_, _ = c.Read(make([]byte, 4<<10))
	}},
	{"silent connections", 10_000, 1, func(*testing.T, net.Conn) {}},
	{"unfinished heads", 3_000, 1, func(_ *testing.T, c net.Conn) {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nX-Filler: "+strings.Repeat("x", 30<<10))
	}},
	{"requests that wait", 3_000, 8, func(_ *testing.T, c net.Conn) {
		_, _ = io.WriteString(c, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
	}},
	{"bodies that do not end", 3_000, 8, func(_ *testing.T, c net.Conn) {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(c, "POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("x", 200<<10))
	}},
	{"answers that are not read", 3_000, 8, func(_ *testing.T, c net.Conn) {
		_, _ = io.WriteString(c, "GET /long HTTP/1.1\r\nHost: a\r\n\r\n")
	}},
	{"answers that are not read, with more behind the request", 3_000, 8, func(_ *testing.T, c net.Conn) {
		_, _ = io.WriteString(c, "GET /long HTTP/1.1\r\nHost: a\r\n\r\n")
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 10_000))
	}},
	{"WebSockets", 3_000, 1, func(_ *testing.T, c net.Conn) {
		_, _ = io.WriteString(c, "GET /tunnel HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = c.Read(make([]byte, 4<<10))
	}},
	{"idle connections of HTTP/2", 3_000, 1, func(t *testing.T, c net.Conn) { streams(t, c, 1, "/", 10, 0) }},
	{"idle connections of HTTP/2 that were busy", 3_000, 1, func(t *testing.T, c net.Conn) {
		_ = c.SetDeadline(time.Now().Add(2 * time.Second))
		streams(t, c, 1, "/", 14_000, 16<<10)
		_ = http2.NewFramer(c, c).WriteData(1, true, make([]byte, 16<<10))
		_, _ = c.Read(make([]byte, 4<<10))
	}},
	{"streams with large heads", 40, 4, func(t *testing.T, c net.Conn) { streams(t, c, 250, "/wait", 27_000, 0) }},
	{"streams with bodies that do not end", 300, 1, func(t *testing.T, c net.Conn) { streams(t, c, 20, "/wait", 10, 16<<10) }},
	{"streams whose answers are not read", 300, 1, func(t *testing.T, c net.Conn) { streams(t, c, 4, "/long", 10, 0) }},
}

// TestFloodsStayWithinTheContainer: the memory of the container stays below 85 % of its limit,
// and a client at another address is served throughout.
func TestFloodsStayWithinTheContainer(t *testing.T) {
	file := build(t)
	for i, f := range floods {
		t.Run(f.name, func(t *testing.T) {
			s := start(t, file, i, nil)
			served := serveOther(t, s)
			rush(t, s, f)
			after := served.Load() + 50
			until(t, "the other client is not served", func() bool { return served.Load() >= after })
			s.staysWithin(t)
			t.Logf("%.0f connections, %.0f idle and %.0f with a head were closed; refused %.0f connections and %.0f requests", s.figure(t, `process_open_fds`),
				s.figure(t, `weir_sidecar_closed_connections_total{state="idle"}`), s.figure(t, `weir_sidecar_closed_connections_total{state="head"}`),
				s.figure(t, `weir_sidecar_memory_refused_total{class="connections"}`), s.figure(t, `weir_sidecar_memory_refused_total{class="requests"}`))
		})
	}
}

// staysWithin fails the test where the sidecar had more than 85 % of its container.
func (s *program) staysWithin(t *testing.T) {
	t.Helper()
	bytes, of := s.peak(t)
	t.Logf("%s: at most %d of %d MiB, %.0f %%", of, bytes>>20, container>>20, float64(bytes)/container*100)
	if bytes > most {
		t.Errorf("%s: %d MiB were in use, more than 85 %% of %d", of, bytes>>20, container>>20)
	}
	if s.group == nil {
		return
	}
	if n, err := s.group.Kills(); err != nil || n > 0 {
		t.Errorf("%d processes were killed, %v", n, err)
	}
}

// rush opens the connections of the flood from its addresses, and keeps them until the test ends.
func rush(t *testing.T, s *program, f flood) {
	t.Helper()
	var rushing sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(f.connections))
	for i := range 64 {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 78, 0, byte(1+i%f.addresses))}}
		rushing.Go(func() {
			for left.Add(-1) >= 0 {
				c, err := dialer.DialContext(t.Context(), "tcp", s.inbound())
				if err != nil {
					continue // the sidecar may be slow to accept
				}
				t.Cleanup(func() { c.Close() })
				_ = c.SetDeadline(time.Now().Add(patience))
				f.say(t, c)
			}
		})
	}
	rushing.Wait()
}

// serveOther sends requests from another address until the test ends, and counts the answers.
// The flood ends after it, since clients come before that is over.
func serveOther(t *testing.T, s *program) *atomic.Int64 {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.79.0.1")}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	c := &http.Client{Transport: transport}
	served := new(atomic.Int64)
	var asking sync.WaitGroup
	asking.Go(func() {
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			<-pace.C
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.inbound()+"/", http.NoBody)
			if err != nil {
				t.Error(err)
				return
			}
			r.Close = i%2 == 0
			res, err := c.Do(r)
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("request %d of the other client: %v", i, err)
				}
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Errorf("request %d of the other client: %s", i, res.Status)
				return
			}
			served.Add(1)
		}
	})
	t.Cleanup(func() {
		end()
		asking.Wait()
		transport.CloseIdleConnections()
	})
	return served
}

// app answers by the path, until the test is over.
func app(over <-chan struct{}, w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/wait":
		select {
		case <-r.Context().Done():
		case <-over: // net/http does not notice the end of a client whose body is not read
		}
	case "/late":
		answerLate(over, w, r)
	case "/long":
		for part := bytes.Repeat([]byte("x"), 64<<10); ; runtime.Gosched() {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	case "/tunnel":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
	case "/":
		_, _ = io.WriteString(w, "hello")
	default:
		soaked(w, r)
	}
}

// streams opens streams over HTTP/2 with a head of about that many bytes. One with a body sends
// as much of it as the sidecar takes at first, and does not end it. Answers are not read.
func streams(t *testing.T, c net.Conn, number int, path string, head, body int) {
	_, _ = io.WriteString(c, http2.ClientPreface)
	framer := http2.NewFramer(c, c)
	_ = framer.WriteSettings()
	_ = framer.WriteSettingsAck()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := range number {
		block.Reset()
		for _, f := range []hpack.HeaderField{
			{Name: ":method", Value: map[bool]string{true: "POST", false: "GET"}[body > 0]},
			{Name: ":scheme", Value: "http"},
			{Name: ":authority", Value: "a"},
			{Name: ":path", Value: path},
			{Name: "x-filler", Value: strings.Repeat(fmt.Sprint(i%10), head), Sensitive: true}, // each is sent whole
		} {
			if err := encoder.WriteField(f); err != nil {
				t.Error(err)
				return
			}
		}
		if err := writeHead(framer, uint32(2*i+1), block.Bytes(), body == 0); err != nil {
			return // the connection was refused
		}
		if body > 0 && framer.WriteData(uint32(2*i+1), false, make([]byte, body)) != nil {
			return
		}
	}
	_, _ = c.Read(make([]byte, 4<<10))
}

// writeHead writes a head in as many frames as it needs.
func writeHead(f *http2.Framer, stream uint32, block []byte, ends bool) error {
	first := block[:min(len(block), 16<<10)]
	rest := block[len(first):]
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndHeaders: len(rest) == 0, EndStream: ends}); err != nil {
		return err
	}
	for len(rest) > 0 {
		part := rest[:min(len(rest), 16<<10)]
		rest = rest[len(part):]
		if err := f.WriteContinuation(stream, len(rest) == 0, part); err != nil {
			return err
		}
	}
	return nil
}
