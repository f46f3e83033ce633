package frames

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// TestARequestThatTheAppHasNotBegunIsSentAgain, with what was sent of its body, over another
// connection or the same.
func TestARequestThatTheAppHasNotBegunIsSentAgain(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.ask(1, "POST", "/", false)
	c.data(1, false, "some")
	app := w.accept()
	app.want("HEADERS 1 :method=POST :path=/", "DATA 1 some")
	app.must(app.framer.WriteGoAway(0, http2.ErrCodeNo, nil))
	other := w.accept()
	other.want("HEADERS 1 :method=POST :path=/", "DATA 1 some")
	app.want("EOF")
	other.must(other.framer.WriteRSTStream(1, http2.ErrCodeRefusedStream))
	other.want("HEADERS 3 :method=POST :path=/", "DATA 3 some")
	c.data(1, true, " more")
	other.want("DATA 3  more END")
	other.headers(3, true, ":status", "200")
	c.want("HEADERS 1 :status=200 END")
	w.handler.last().wantEnd(t, exchange.Complete)
}

// TestARequestIsNotSentAgainForEver, nor one with more sent than is kept.
func TestARequestIsNotSentAgainForEver(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.ask(1, "GET", "/", true)
	app := w.accept()
	for i := range uint32(tries) {
		app.want("HEADERS " + itoa(2*i+1) + " :method=GET :path=/ END")
		app.must(app.framer.WriteRSTStream(2*i+1, http2.ErrCodeRefusedStream))
	}
	c.want("HEADERS 1 :status=502 END")
	c.ask(3, "GET", "/", false)
	app.want("HEADERS 7 :method=GET :path=/")
	c.data(3, true, strings.Repeat("x", exchange.KeptBytes+1))
	app.want("DATA 7 4097 bytes END")
	app.must(app.framer.WriteRSTStream(7, http2.ErrCodeRefusedStream))
	c.want("HEADERS 3 :status=502 END")
	w.handler.last().wantEnd(t, exchange.NoAnswer)
}

// TestARequestThatTheAppMayHaveBegunIsSentAgainWhereThatDoesNoHarm, once, and only where the
// connection had served others.
func TestARequestThatTheAppMayHaveBegunIsSentAgainWhereThatDoesNoHarm(t *testing.T) {
	for name, tc := range map[string]struct {
		method string
		fields []string
		first  bool
		again  bool
	}{
		"GET":                     {method: "GET", again: true},
		"GET on a new connection": {method: "GET", first: true},
		"POST":                    {method: "POST"},
		"DELETE":                  {method: "DELETE"},
		"POST with a key":         {method: "POST", fields: []string{"idempotency-key", "k"}, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.client()
			app := (*end)(nil)
			if !tc.first {
				c.ask(1, "GET", "/", true)
				app = w.accept()
				app.want("HEADERS 1 :method=GET :path=/ END")
				app.headers(1, true, ":status", "200")
				c.want("HEADERS 1 :status=200 END")
			}
			c.ask(3, tc.method, "/", true, tc.fields...)
			if tc.first {
				app = w.accept()
			}
			if got := app.read(); !strings.Contains(got, tc.method) {
				t.Fatalf("read %q", got)
			}
			app.Close()
			if tc.again {
				app = w.accept()
				if got := app.read(); !strings.Contains(got, tc.method) {
					t.Fatalf("read %q", got)
				}
				app.Close()
			}
			c.want("HEADERS 3 :status=502 END")
			w.handler.last().wantEnd(t, exchange.NoAnswer)
		})
	}
}

// TestAnAppMayTakeFewStreams over a connection: there are more connections then.
func TestAnAppMayTakeFewStreams(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.ask(1, "GET", "/", true)
	first := w.accept(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
	first.want("HEADERS 1 :method=GET :path=/ END")
	c.ask(3, "GET", "/", true)
	second := w.accept(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
	second.want("HEADERS 1 :method=GET :path=/ END")
	second.headers(1, true, ":status", "200")
	c.want("HEADERS 3 :status=200 END")
	first.headers(1, true, ":status", "201")
	c.want("HEADERS 1 :status=201 END")
	c.ask(5, "GET", "/", true)
	first.want("HEADERS 3 :method=GET :path=/ END")
}

// TestAnAppThatTakesNoFurtherConnection has requests wait for one that it has.
func TestAnAppThatTakesNoFurtherConnection(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.ask(1, "GET", "/", true)
	app := w.accept(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
	app.want("HEADERS 1 :method=GET :path=/ END")
	w.app.Close()
	c.ask(3, "GET", "/", true)
	<-w.handler.entered
	<-w.handler.entered
	app.headers(1, true, ":status", "201")
	c.want("HEADERS 1 :status=201 END")
	app.want("HEADERS 3 :method=GET :path=/ END")
	app.must(app.framer.WriteGoAway(3, http2.ErrCodeNo, nil))
	app.headers(3, true, ":status", "202")
	c.want("HEADERS 3 :status=202 END")
	app.want("EOF")
	c.ask(5, "GET", "/", true)
	c.want("HEADERS 5 :status=502 END")
	w.handler.last().wantEnd(t, exchange.NoAnswer)
}

// TestAnAppThatTakesNoStreamsForAWhile has requests wait, and is not asked for connections again and
// again.
func TestAnAppThatTakesNoStreamsForAWhile(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	none := http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0}
	c.ask(1, "GET", "/", true)
	app := w.accept(none)
	app.wantQuiet()
	<-w.handler.entered
	<-w.handler.last().forwarded
	c.ask(3, "GET", "/", true)
	<-w.handler.entered
	<-w.handler.last().forwarded
	c.wantQuiet()
	app.must(app.framer.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 2}))
	app.want("HEADERS 1 :method=GET :path=/ END", "HEADERS 3 :method=GET :path=/ END")
	if w.any(func(c *conn) bool { return len(c.apps) != 1 }) {
		t.Error("there are more connections")
	}
	app.must(app.framer.WriteSettings(none)) // those that are open go on
	app.headers(3, true, ":status", "201")
	app.headers(1, true, ":status", "202")
	c.want("HEADERS 3 :status=201 END", "HEADERS 1 :status=202 END")
}

// TestAnAppThatGoesAwayInTwoSteps, as servers do to lose no request: it serves those that it got
// before, and the others go over another connection.
func TestAnAppThatGoesAwayInTwoSteps(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	for id := uint32(1); id <= 5; id += 2 {
		c.ask(id, "POST", "/"+itoa(id), false)
	}
	app, paths := w.accept(), map[string]uint32{}
	for id := uint32(1); id <= 5; id += 2 { // in the order in which they were decided
		paths[strings.TrimPrefix(app.read(), "HEADERS "+itoa(id)+" :method=POST :path=")] = id
	}
	app.headers(1, false, ":status", "200")
	app.must(app.framer.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil))
	app.wantQuiet()
	c.ask(7, "GET", "/7", true)
	other := w.accept()
	other.want("HEADERS 1 :method=GET :path=/7 END")
	app.must(app.framer.WriteGoAway(3, http2.ErrCodeNo, nil))
	moved := ""
	for path, id := range paths {
		if id == 5 {
			moved = path
		}
	}
	other.want("HEADERS 3 :method=POST :path=" + moved)
	other.headers(3, true, ":status", "203")
	app.data(1, true, "one")
	app.headers(3, true, ":status", "202")
	other.headers(1, true, ":status", "207")
	answered := map[string]bool{}
	for len(answered) < 4 {
		if got := c.read(); strings.Contains(got, ":status=20") {
			answered[got] = true
		} else if got == "EOF" || strings.HasPrefix(got, "GOAWAY") {
			t.Fatalf("read %q", got)
		}
	}
	for path, id := range paths {
		if want := "HEADERS " + path[1:] + " :status=" + map[uint32]string{1: "200", 3: "202 END", 5: "203 END"}[id]; !answered[want] {
			t.Errorf("there is no %q in %v", want, answered)
		}
	}
	for app.read() != "EOF" { // behind resets of requests whose rest is of no use
	}
}

// TestAnAppThatSpeaksOnlyHTTP1 does not answer.
func TestAnAppThatSpeaksOnlyHTTP1(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.ask(1, "GET", "/", true)
	conn, err := w.app.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
	c.want("HEADERS 1 :status=502 END")
	w.handler.last().wantEnd(t, exchange.NoAnswer)
}

// TestResetsAreNotPassedFasterThanTheAppHandlesThem: streams count until it has answered a ping.
func TestResetsAreNotPassedFasterThanTheAppHandlesThem(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.ask(1, "GET", "/", true)
	app := w.accept(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
	app.want("HEADERS 1 :method=GET :path=/ END")
	c.must(c.framer.WriteRSTStream(1, http2.ErrCodeCancel))
	app.want("RST 1 CANCEL", "PING")
	c.ask(3, "GET", "/", true)
	other := w.accept(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
	other.want("HEADERS 1 :method=GET :path=/ END")
	app.must(app.framer.WritePing(true, pingData))
	c.ask(5, "GET", "/", true)
	app.want("HEADERS 3 :method=GET :path=/ END")
	c.must(c.framer.WriteRSTStream(5, http2.ErrCodeCancel))
	app.want("RST 3 CANCEL") // and no ping before the app has answered something
	app.wantQuiet()
}

// TestFaultsOfTheAppAreNotItsClients: each ends a stream or the connection to the app.
func TestFaultsOfTheAppAreNotItsClients(t *testing.T) {
	for name, fault := range map[string]func(app *end){
		"no status":                  func(app *end) { app.headers(1, true, "x", "y") },
		"a wrong status":             func(app *end) { app.headers(1, true, ":status", "abc") },
		"a length without that body": func(app *end) { app.headers(1, true, ":status", "200", "content-length", "5") },
		"a switch":                   func(app *end) { app.headers(1, false, ":status", "101") },
		"a last interim":             func(app *end) { app.headers(1, true, ":status", "103") },
		"data before":                func(app *end) { app.data(1, false, "x") },
		"a push": func(app *end) {
			app.must(app.framer.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true}))
		},
		"another stream":    func(app *end) { app.headers(7, true, ":status", "200") },
		"data of none":      func(app *end) { app.data(2, true, "x") },
		"a name":            func(app *end) { app.headers(1, true, ":status", "200", "X-Upper", "y") },
		"a large head":      func(app *end) { app.headers(1, true, ":status", "200", "x", strings.Repeat("y", 1<<20)) },
		"its end":           func(app *end) { app.Close() },
		"a window too wide": func(app *end) { app.must(app.framer.WriteWindowUpdate(0, maxWindow)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.client()
			c.ask(1, http.MethodGet, "/", true)
			app := w.accept()
			app.want("HEADERS 1 :method=GET :path=/ END")
			go func() { _, _ = io.Copy(io.Discard, app.Conn) }()
			fault(app)
			c.want("HEADERS 1 :status=502 END")
			w.handler.last().wantEnd(t, exchange.NoAnswer)
			c.wantQuiet()
		})
	}
}

// TestAWaitForTheAppEndsWithItsClient, also before there is a connection.
func TestAWaitForTheAppEndsWithItsClient(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.ask(1, "GET", "/", true)
	conn, err := w.app.Accept() // and nothing else
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	select {
	case <-w.handler.entered:
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
	<-w.handler.last().forwarded
	c.must(c.framer.WriteRSTStream(1, http2.ErrCodeCancel))
	w.handler.last().wantEnd(t, exchange.Left)
	c.ask(3, "GET", "/", true)
	<-w.handler.entered
	<-w.handler.last().forwarded
	c.Close()
	w.handler.last().wantEnd(t, exchange.Left)
}

// upload sends n bytes over stream 1, as windows allow, and counts those that were sent.
func upload(c *end, n int, sent *atomic.Int64) {
	window, whole := firstWindow, firstWindow
	for int(sent.Load()) < n {
		if m := min(window, whole, frameBytes, n-int(sent.Load())); m > 0 {
			if c.framer.WriteData(1, false, make([]byte, m)) != nil {
				return
			}
			window, whole = window-m, whole-m
			sent.Add(int64(m))
			continue
		}
		f, err := c.framer.ReadFrame()
		if err != nil {
			return
		}
		if u, ok := f.(*http2.WindowUpdateFrame); ok && u.StreamID == 0 {
			whole += int(u.Increment)
		} else if ok {
			window += int(u.Increment)
		}
	}
	_ = c.framer.WriteData(1, true, nil)
}

// TestAnAppThatStopsReadingHoldsUpNoOtherConnection, and gets all when it reads on. A server that is
// closed meanwhile does not wait for it.
func TestAnAppThatStopsReadingHoldsUpNoOtherConnection(t *testing.T) {
	const size = 32 << 20 // is more than the kernel keeps
	for name, then := range map[string]func(w *world, app *end){
		"it reads on": func(w *world, app *end) {
			if !app.readData(1, size) {
				app.want("DATA 1  END")
			}
			app.headers(1, true, ":status", "204")
			w.handler.all[0].wantEnd(w.T, exchange.Complete)
		},
		"the server is closed": func(w *world, _ *end) {
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				w.server.Close()
			}()
			w.handler.all[0].wantEnd(w.T, exchange.Left)
			select {
			case <-closed:
			case <-time.After(patience): // which is less than a write that nobody reads may take
				w.Fatal("the server waits for the app")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.client()
			c.ask(1, "POST", "/large", false)
			app := w.accept(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
			app.must(app.framer.WriteWindowUpdate(0, 1<<30))
			app.want("HEADERS 1 :method=POST :path=/large")
			var sent atomic.Int64
			var sending sync.WaitGroup
			sending.Go(func() { upload(c, size, &sent) })
			w.stuck(&sent, func(c *conn) bool { return len(c.apps) > 0 && c.apps[0].peer.writing })
			other := w.client()
			other.ask(1, "GET", "/small", true)
			second := w.accept()
			second.want("HEADERS 1 :method=GET :path=/small END")
			second.headers(1, true, ":status", "204")
			other.want("HEADERS 1 :status=204 END")
			then(w, app)
			c.Close()
			sending.Wait()
		})
	}
}
