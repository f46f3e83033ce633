package sidecar

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/proxy"
)

// inFrontOf serves a sidecar's port in front of an app, and returns its server and its
// address.
func inFrontOf(t *testing.T, app http.Handler) (*inboundServer, string) {
	t.Helper()
	behind := httptest.NewUnstartedServer(app)
	behind.Config.Protocols = new(http.Protocols)
	behind.Config.Protocols.SetHTTP1(true)
	behind.Config.Protocols.SetUnencryptedHTTP2(true)
	behind.Start()
	t.Cleanup(behind.Close)
	return inFrontOfAddress(t, behind.Listener.Addr().String())
}

func inFrontOfAddress(t *testing.T, app string) (*inboundServer, string) {
	t.Helper()
	return inFrontOfPooled(t, app, unlimited{}, metrics.New(new(process)))
}

func inFrontOfPooled(t *testing.T, app string, pool proxy.Pool, m *metrics.Metrics) (*inboundServer, string) {
	t.Helper()
	return inFrontOfIn(t, app, pool, m, membudget.New(1<<40))
}

func inFrontOfIn(t *testing.T, app string, pool proxy.Pool, m *metrics.Metrics, memory *membudget.Budget) (*inboundServer, string) {
	t.Helper()
	p := proxy.New(proxy.Config{Target: app, Pool: pool, Decider: counting{new(atomic.Int64)}, Metrics: m, Log: slog.New(slog.DiscardHandler)})
	s, err := listenInbound(t.Context(), "127.0.0.1:0", p, p, memory.Port(true))
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.serve() })
	t.Cleanup(func() {
		s.close()
		serving.Wait()
	})
	return s, s.listener.Addr().String()
}

// overBoth runs a test for a client of each protocol.
func overBoth(t *testing.T, test func(t *testing.T, c *http.Client)) {
	t.Helper()
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			protocols := new(http.Protocols)
			protocols.SetHTTP1(!http2)
			protocols.SetUnencryptedHTTP2(http2)
			transport := &http.Transport{Protocols: protocols, DisableCompression: true, ExpectContinueTimeout: patience}
			defer transport.CloseIdleConnections()
			test(t, &http.Client{Transport: transport})
		})
	}
}

func ask(t *testing.T, c *http.Client, method, url string, body io.Reader, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// TestEventsArriveOneByOne: the app sends each event when the client has read the one
// before.
func TestEventsArriveOneByOne(t *testing.T) {
	overBoth(t, func(t *testing.T, c *http.Client) {
		next := make(chan struct{}, 1)
		next <- struct{}{}
		_, address := inFrontOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 50 {
				select {
				case <-next:
				case <-r.Context().Done():
					return
				}
				_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
				w.(http.Flusher).Flush()
			}
		}))
		lines := bufio.NewScanner(ask(t, c, http.MethodGet, "http://"+address+"/", nil).Body)
		for i := range 50 {
			if !lines.Scan() || lines.Text() != fmt.Sprintf("data: %d", i) || !lines.Scan() {
				t.Fatalf("event %d is %q, %v", i, lines.Text(), lines.Err())
			}
			if i < 49 {
				next <- struct{}{}
			}
		}
		if lines.Scan() {
			t.Errorf("more came: %q", lines.Text())
		}
	})
}

func TestHeadHasNoBody(t *testing.T) {
	overBoth(t, func(t *testing.T, c *http.Client) {
		_, address := inFrontOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "12345")
			w.Header().Set("X-Method", r.Method)
		}))
		for range 2 { // the connection serves on
			res := ask(t, c, http.MethodHead, "http://"+address+"/", nil)
			body, err := io.ReadAll(res.Body)
			if res.ContentLength != 12345 || res.Header.Get("X-Method") != "HEAD" || len(body) > 0 || err != nil {
				t.Errorf("got %d bytes announced, %q, %v", res.ContentLength, body, err)
			}
		}
	})
}

func TestEarlyHintsPass(t *testing.T) {
	overBoth(t, func(t *testing.T, c *http.Client) {
		_, address := inFrontOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			w.WriteHeader(http.StatusTeapot)
		}))
		hints := make(chan string, 1)
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
				hints <- h.Get("Link")
				return nil
			},
		}), http.MethodGet, "http://"+address+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusTeapot || len(hints) != 1 || <-hints != "</style.css>; rel=preload" {
			t.Errorf("got %s, %d hints", res.Status, len(hints))
		}
	})
}

// unread is a body that may not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was sent though the app refused it")
	return 0, io.EOF
}

// TestTheAppMayRefuseABody before any of it is sent, and when it does not, gets it. Over
// HTTP/2 net/http keeps what the client expects to itself, so there only the latter holds.
func TestTheAppMayRefuseABody(t *testing.T) {
	overBoth(t, func(t *testing.T, c *http.Client) {
		_, address := inFrontOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/refuse" {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			body, _ := io.ReadAll(r.Body)
			_, _ = w.Write(body)
		}))
		var refused io.Reader = unread{t}
		if strings.HasSuffix(t.Name(), "HTTP/2") {
			refused = strings.NewReader("hello")
		}
		if res := ask(t, c, http.MethodPut, "http://"+address+"/refuse", refused, "Expect", "100-continue"); res.StatusCode != http.StatusForbidden {
			t.Errorf("got %s", res.Status)
		}
		res := ask(t, c, http.MethodPut, "http://"+address+"/take", strings.NewReader("hello"), "Expect", "100-continue")
		if body, err := io.ReadAll(res.Body); res.StatusCode != http.StatusOK || string(body) != "hello" {
			t.Errorf("got %s, %q, %v", res.Status, body, err)
		}
	})
}

// TestTheAppSeesThatAClientLeft while it works, and while it streams.
func TestTheAppSeesThatAClientLeft(t *testing.T) {
	for name, streams := range map[string]bool{"working": false, "streaming": true} {
		t.Run(name, func(t *testing.T) {
			overBoth(t, func(t *testing.T, c *http.Client) {
				came, heard := make(chan struct{}), make(chan struct{})
				_, address := inFrontOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if streams {
						w.(http.Flusher).Flush()
					}
					close(came)
					<-r.Context().Done()
					close(heard)
				}))
				ctx, leave := context.WithCancel(t.Context())
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
				if err != nil {
					t.Fatal(err)
				}
				var asking sync.WaitGroup
				asking.Go(func() {
					if res, err := c.Do(r); err == nil {
						_, _ = io.Copy(io.Discard, res.Body)
						res.Body.Close()
					}
				})
				<-came
				leave()
				select {
				case <-heard:
				case <-time.After(patience):
					t.Error("the app works for nobody")
				}
				asking.Wait()
			})
		})
	}
}

// endless is a body without an end.
type endless struct{ read atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read.Add(int64(len(p)))
	return len(p), nil
}

// TestAnEarlyAnswerArrives though the client is still sending.
func TestAnEarlyAnswerArrives(t *testing.T) {
	overBoth(t, func(t *testing.T, c *http.Client) {
		_, address := inFrontOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.CopyN(io.Discard, r.Body, 100<<10)
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			_, _ = io.WriteString(w, "enough")
		}))
		res := ask(t, c, http.MethodPost, "http://"+address+"/", new(endless))
		if body, err := io.ReadAll(res.Body); res.StatusCode != http.StatusRequestEntityTooLarge || string(body) != "enough" {
			t.Errorf("got %s, %q, %v", res.Status, body, err)
		}
	})
}

// TestLargeBodiesTakeNoMemory sends a body both ways. The memory that client, sidecar
// and app together take from the system on the way is bounded.
func TestLargeBodiesTakeNoMemory(t *testing.T) {
	overBoth(t, func(t *testing.T, c *http.Client) {
		size := int64(1 << 30)
		if strings.HasSuffix(t.Name(), "HTTP/2") || testing.Short() {
			size >>= 2 // frames take time
		}
		_, address := inFrontOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				n, _ := io.Copy(io.Discard, r.Body)
				_, _ = fmt.Fprint(w, n)
				return
			}
			_, _ = io.CopyBuffer(struct{ io.Writer }{w}, io.LimitReader(new(endless), size), make([]byte, 64<<10))
		}))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		res := ask(t, c, http.MethodPut, "http://"+address+"/", io.LimitReader(new(endless), size))
		if body, err := io.ReadAll(res.Body); string(body) != fmt.Sprint(size) {
			t.Errorf("the app read %q bytes, %v", body, err)
		}
		res = ask(t, c, http.MethodGet, "http://"+address+"/", nil)
		if n, err := io.Copy(io.Discard, res.Body); n != size {
			t.Errorf("the client read %d bytes, %v", n, err)
		}
		runtime.ReadMemStats(&after)
		if took := int64(after.HeapSys) - int64(before.HeapSys); took > size/8 {
			t.Errorf("the heap grew by %d bytes for 2 bodies of %d", took, size)
		}
	})
}

// TestConnectionsEndWhenAsked, and serve on otherwise.
func TestConnectionsEndWhenAsked(t *testing.T) {
	_, address := inFrontOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/last" {
			w.Header().Set("Connection", "close") // the app's connection, which is not the client's
		}
		_, _ = io.WriteString(w, "hello")
	}))
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	reader := bufio.NewReader(conn)
	for _, step := range []struct {
		request string
		close   bool
	}{
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false},
		{"GET /last HTTP/1.1\r\nHost: a\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", true},
	} {
		_, _ = io.WriteString(conn, step.request)
		res, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if string(body) != "hello" || res.Close != step.close {
			t.Errorf("%q: got %q, closing %t", step.request, body, res.Close)
		}
	}
	if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection goes on: %v", err)
	}
}

// TestASlowClientGetsAllOfIt reads an answer that is larger than all buffers only when
// the app had to wait for it.
func TestASlowClientGetsAllOfIt(t *testing.T) {
	overBoth(t, func(t *testing.T, c *http.Client) {
		const size = 64 << 20
		var written atomic.Int64
		full := make(chan struct{})
		_, address := inFrontOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			chunk := make([]byte, 1<<20)
			for written.Load() < size {
				stuck := time.AfterFunc(200*time.Millisecond, sync.OnceFunc(func() {
					select {
					case <-full:
					default:
						close(full)
					}
				}))
				n, err := w.Write(chunk)
				stuck.Stop()
				if err != nil {
					return
				}
				written.Add(int64(n))
			}
		}))
		res := ask(t, c, http.MethodGet, "http://"+address+"/", nil)
		select {
		case <-full:
		case <-time.After(patience):
		}
		if n := written.Load(); n == size {
			t.Errorf("the sidecar took all %d bytes from the app before the client read one", n)
		}
		if n, err := io.Copy(io.Discard, res.Body); n != size {
			t.Errorf("read %d bytes, %v", n, err)
		}
	})
}

// TestSlowHeadersStopNobody opens connections that never finish a request, over which
// others are served, and which are closed in time.
func TestSlowHeadersStopNobody(t *testing.T) {
	t.Parallel()
	const slow = 1000
	_, address := inFrontOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	begun := time.Now()
	var closed sync.WaitGroup
	var cut, open atomic.Int64
	for i := range slow {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(headerTimeout + patience))
		part := "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "
		_, _ = io.WriteString(conn, part[:i%len(part)])
		closed.Go(func() {
			defer conn.Close()
			_, err := io.ReadAll(conn)
			if nerr, ok := err.(net.Error); ok && nerr.Timeout() { //nolint:errorlint // as net returns it
				open.Add(1)
				return
			}
			cut.Add(1)
		})
	}
	overBoth(t, func(t *testing.T, c *http.Client) {
		for range 20 {
			if res := ask(t, c, http.MethodGet, "http://"+address+"/", nil); res.StatusCode != http.StatusOK {
				t.Errorf("got %s", res.Status)
			}
		}
	})
	if early := cut.Load(); early > 0 && time.Since(begun) < headerTimeout {
		t.Errorf("%d were closed before their time", early)
	}
	closed.Wait()
	if n := open.Load(); n > 0 {
		t.Errorf("%d of %d are still open %v after they began", n, slow, time.Since(begun))
	}
}
