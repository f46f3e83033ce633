package frames

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// TestAConnectionEndsBehindTheLastStream once the server leaves: streams that are open go on, and
// later ones are not begun.
func TestAConnectionEndsBehindTheLastStream(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.ask(1, "GET", "/", true)
	app := w.accept()
	app.want("HEADERS 1 :method=GET :path=/ END")
	c.wantQuiet()
	w.server.Leave()
	c.ask(3, "GET", "/", true)
	c.want("GOAWAY 3 NO_ERROR")
	c.ask(5, "GET", "/", true)
	c.wantQuiet()
	app.want("HEADERS 3 :method=GET :path=/ END")
	app.headers(3, true, ":status", "200")
	app.headers(1, true, ":status", "201")
	c.want("HEADERS 3 :status=200 END", "HEADERS 1 :status=201 END")
	c.Close()
	app.want("EOF")
}

// TestADrainWaitsForStreams until its time is over, and cuts them off then.
func TestADrainWaitsForStreams(t *testing.T) {
	for name, cut := range map[string]bool{"in time": false, "cut": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c, idle := w.client(), w.client()
			c.ask(1, "GET", "/", true)
			app := w.accept()
			app.want("HEADERS 1 :method=GET :path=/ END")
			idle.wantQuiet()
			grace, end := context.WithCancel(t.Context())
			defer end()
			var draining sync.WaitGroup
			draining.Go(func() { w.server.Drain(grace) })
			c.want("GOAWAY 1 NO_ERROR")
			idle.want("GOAWAY 0 NO_ERROR")
			idle.Close()
			if cut {
				end()
				c.want("EOF")
				w.handler.last().wantEnd(t, exchange.Left)
			} else {
				app.headers(1, true, ":status", "200")
				c.want("HEADERS 1 :status=200 END")
				c.Close()
				w.handler.last().wantEnd(t, exchange.Complete)
			}
			draining.Wait()
			late := w.client()
			late.want("EOF")
		})
	}
}

// TestErrorsEndTheConnection with a GOAWAY that says why, and what is in flight ends.
func TestErrorsEndTheConnection(t *testing.T) {
	raw := func(b ...byte) func(*end) {
		return func(c *end) { _, _ = c.Write(b) }
	}
	for name, tc := range map[string]struct {
		do   func(c *end)
		want string
	}{
		"an even stream":           {func(c *end) { c.ask(2, "GET", "/", true) }, "GOAWAY 2 PROTOCOL_ERROR"},
		"a stream that went by":    {func(c *end) { c.ask(5, "GET", "/refused", true); c.ask(3, "GET", "/", true) }, "GOAWAY 5 PROTOCOL_ERROR"},
		"data of an idle stream":   {func(c *end) { c.data(9, false, "x") }, "GOAWAY 9 PROTOCOL_ERROR"},
		"reset of an idle stream":  {func(c *end) { c.must(c.framer.WriteRSTStream(9, http2.ErrCodeCancel)) }, "GOAWAY 9 PROTOCOL_ERROR"},
		"window of an idle stream": {func(c *end) { c.must(c.framer.WriteWindowUpdate(9, 1)) }, "GOAWAY 9 PROTOCOL_ERROR"},
		"a window too wide":        {func(c *end) { c.must(c.framer.WriteWindowUpdate(0, maxWindow)) }, "GOAWAY 1 FLOW_CONTROL_ERROR"},
		"an unknown acknowledgement": {func(c *end) {
			c.must(c.framer.WriteSettingsAck())
			c.must(c.framer.WriteSettingsAck())
		}, "GOAWAY 1 PROTOCOL_ERROR"},
		"a push": {func(c *end) {
			c.must(c.framer.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true}))
		}, "GOAWAY 1 PROTOCOL_ERROR"},
		"a frame too large": {raw(0x10, 0, 0, 0, 0, 0, 0, 0, 1), "GOAWAY 1 FRAME_SIZE_ERROR"},
		"a broken block":    {raw(0, 0, 1, 1, 5, 0, 0, 0, 3, 0xff), "GOAWAY 3 COMPRESSION_ERROR"},
		"too many settings": {func(c *end) { c.must(c.framer.WriteSettings(make([]http2.Setting, maxSettings+1)...)) }, "GOAWAY 1 PROTOCOL_ERROR"},
		"a wrong setting":   {func(c *end) { c.must(c.framer.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1})) }, "GOAWAY 1 PROTOCOL_ERROR"},
		"a wrong window": {func(c *end) {
			c.must(c.framer.WriteWindowUpdate(1, maxWindow-1_000_000))
			c.must(c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 2_000_000}))
		}, "GOAWAY 1 FLOW_CONTROL_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.client()
			c.ask(1, "GET", "/", true)
			app := w.accept()
			app.want("HEADERS 1 :method=GET :path=/ END")
			tc.do(c)
			for got := ""; got != tc.want; {
				if got = c.read(); strings.HasPrefix(got, "GOAWAY") && got != tc.want || got == "EOF" {
					t.Fatalf("read %q, want %q", got, tc.want)
				}
			}
			c.Close()
			for app.read() != "EOF" { // the reset may be lost with the connection
			}
			w.handler.all[0].wantEnd(t, exchange.Left)
		})
	}
}

// TestTheFirstFrameIsSettings or the connection ends.
func TestTheFirstFrameIsSettings(t *testing.T) {
	w := newWorld(t)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", w.front.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := newEnd(t, conn)
	_, _ = io.WriteString(conn, http2.ClientPreface)
	c.must(c.framer.WritePing(false, [8]byte{}))
	c.want("GOAWAY 0 PROTOCOL_ERROR")
	c.Close()
}

// timed serves a connection on a virtual clock, and returns the frames that its client gets and
// when.
func timed(t *testing.T, client func(framer *http2.Framer)) (all []string) {
	t.Helper()
	far, near := net.Pipe()
	s := NewServer(Config{Handler: newHandler(), HeaderBytes: 32 << 10, Log: slog.New(slog.DiscardHandler)})
	memory, _ := membudget.New(1<<30).Port(false).Connect(netip.Addr{}, 1, holder{near})
	var running sync.WaitGroup
	running.Go(func() { s.Serve(pipe{near}, memory, nil) })
	framer := http2.NewFramer(far, far)
	began := time.Now()
	running.Go(func() {
		for {
			f, err := framer.ReadFrame()
			words := "EOF"
			if err == nil {
				words = inWords(f)
			}
			if words != "" {
				all = append(all, time.Since(began).Round(time.Second).String()+" "+words)
			}
			if err != nil {
				return
			}
		}
	})
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	client(framer)
	running.Wait()
	s.Close()
	far.Close()
	return all
}

// A pipe has an address.
type pipe struct{ net.Conn }

// RemoteAddr implements net.Conn.
func (pipe) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1} }

// TestAConnectionThatIsIdleEnds with a GOAWAY, though its client answers pings.
func TestAConnectionThatIsIdleEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := timed(t, func(f *http2.Framer) {
			for range 14 {
				time.Sleep(5 * time.Second)
				if err := f.WritePing(true, pingData); err != nil {
					t.Error(err)
				}
			}
		})
		if want := "1m15s GOAWAY 0 NO_ERROR, 1m16s EOF"; strings.Join(got, ", ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestASilentPeerIsAsked and its connection closed.
func TestASilentPeerIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := timed(t, func(*http2.Framer) {})
		if want := "30s PING, 45s EOF"; strings.Join(got, ", ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestAClientThatReadsNothingIsClosed once something has waited for it to do so.
func TestAClientThatReadsNothingIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far, near := net.Pipe()
		s := NewServer(Config{Handler: newHandler(), HeaderBytes: 32 << 10, Log: slog.New(slog.DiscardHandler)})
		memory, _ := membudget.New(1<<30).Port(false).Connect(netip.Addr{}, 1, holder{near})
		began := time.Now()
		s.Serve(pipe{near}, memory, nil)
		if took := time.Since(began); took < stalledTime || took > 2*stalledTime {
			t.Errorf("it was closed after %v", took)
		}
		s.Close()
		far.Close()
	})
}

// TestManyStreamsOfManyConnectionsPass both ways at once.
func TestManyStreamsOfManyConnectionsPass(t *testing.T) {
	const connections, streams, size = 6, 40, 50_000
	w := newWorld(t)
	serveHTTP2(t, w, echo)
	var running sync.WaitGroup
	body := strings.Repeat("0123456789", size/10)
	for range connections {
		transport := &http.Transport{
			Protocols: new(http.Protocols),
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", w.front.Addr().String())
			},
		}
		transport.Protocols.SetUnencryptedHTTP2(true)
		t.Cleanup(transport.CloseIdleConnections)
		for range streams {
			running.Go(func() {
				r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://app.example/", strings.NewReader(body))
				answer, err := transport.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer answer.Body.Close()
				if got, err := io.ReadAll(answer.Body); err != nil || string(got) != body {
					t.Errorf("%d bytes of %d came back, %v", len(got), size, err)
				}
			})
		}
	}
	running.Wait()
	eventually(t, "streams are left", func() bool { return !w.any(func(c *conn) bool { return len(c.streams) > 0 || c.lingering > 0 }) })
	w.wantWindows()
}
