package frames

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// readData reads n bytes of a stream's data, and returns how the last frame ended.
func (e *end) readData(stream uint32, n int) (ended bool) {
	e.Helper()
	for n > 0 {
		f, err := e.framer.ReadFrame()
		e.must(err)
		if d, ok := f.(*http2.DataFrame); ok && d.StreamID == stream {
			n -= len(d.Data())
			ended = d.StreamEnded()
		} else if words := inWords(f); words != "" {
			e.Fatalf("read %q within data", words)
		}
	}
	if n < 0 {
		e.Fatalf("read %d bytes too many", -n)
	}
	return ended
}

// wantQuiet sees that nothing has been sent before the answer to a ping.
func (e *end) wantQuiet() {
	e.Helper()
	e.must(e.framer.WritePing(false, [8]byte{1}))
	e.want("PONG")
}

// TestAClientThatDoesNotReadHoldsUpItsStreamOnly, and the sidecar takes no more of the answer than
// the window that it has given the app.
func TestAClientThatDoesNotReadHoldsUpItsStreamOnly(t *testing.T) {
	const window = 100
	w := newWorld(t)
	c := w.client(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
	c.ask(1, "GET", "/large", true)
	app := w.accept()
	app.want("HEADERS 1 :method=GET :path=/large END")
	app.headers(1, false, ":status", "200")
	app.data(1, false, strings.Repeat("x", answerWindow))
	c.want("HEADERS 1 :status=200")
	c.readData(1, window)
	c.ask(3, "GET", "/small", true)
	app.want("HEADERS 3 :method=GET :path=/small END")
	app.headers(3, false, ":status", "200")
	app.data(3, true, "hello")
	c.want("HEADERS 3 :status=200", "DATA 3 hello END")
	app.data(1, false, strings.Repeat("x", window+1)) // only that much was given back, if that
	app.want("RST 1 FLOW_CONTROL_ERROR", "PING")
	c.must(c.framer.WriteWindowUpdate(1, 1<<20))
	c.readData(1, answerWindow-window)
	c.want("RST 1 INTERNAL_ERROR")
	w.handler.all[0].wantEnd(t, exchange.Broken)
}

// TestAnswersOfAnySizePass though windows are small, those of streams and those of connections.
func TestAnswersOfAnySizePass(t *testing.T) {
	const size, streams = 300_000, 5
	w := newWorld(t)
	c := w.client(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
	for i := range streams {
		c.ask(uint32(2*i+1), "GET", "/", true)
	}
	app := w.accept()
	done := make(chan struct{})
	go func() {
		defer close(done)
		left, window, open := map[uint32]int{}, map[uint32]int{}, 0
		for {
			f, err := app.framer.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.MetaHeadersFrame:
				app.headers(f.StreamID, false, ":status", "200")
				left[f.StreamID], window[f.StreamID] = size, answerWindow
				open++
			case *http2.WindowUpdateFrame:
				if f.StreamID != 0 {
					window[f.StreamID] += int(f.Increment)
				}
			}
			for id := range left {
				for n := min(left[id], window[id], 5000); n > 0; n = min(left[id], window[id], 5000) {
					left[id] -= n
					window[id] -= n
					app.data(id, left[id] == 0, strings.Repeat("x", n))
				}
			}
		}
	}()
	got, ended := map[uint32]int{}, 0
	for ended < streams {
		f, err := c.framer.ReadFrame()
		c.must(err)
		d, ok := f.(*http2.DataFrame)
		if !ok {
			continue
		}
		got[d.StreamID] += len(d.Data())
		if d.StreamEnded() {
			ended++
			continue
		}
		if n := uint32(len(d.Data())); n > 0 {
			c.must(c.framer.WriteWindowUpdate(0, n))
			c.must(c.framer.WriteWindowUpdate(d.StreamID, n))
		}
	}
	for id, n := range got {
		if n != size {
			t.Errorf("stream %d has %d bytes", id, n)
		}
	}
	w.wantWindows()
	app.Close()
	<-done
}

// TestAnAppThatDoesNotReadHoldsUpItsStreamOnly: the client may send no more than the windows that
// docs/proxy.md states.
func TestAnAppThatDoesNotReadHoldsUpItsStreamOnly(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	const streams = membudget.WindowsBytes / membudget.WindowBytes
	var app *end
	for i := range uint32(streams) {
		c.ask(2*i+1, "POST", "/", false)
		c.data(2*i+1, false, strings.Repeat("x", membudget.WindowBytes))
		if app == nil {
			app = w.accept(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		}
		app.want(fmt.Sprintf("HEADERS %d :method=POST :path=/", 2*i+1), fmt.Sprintf("DATA %d xxxxxxxxxx", 2*i+1))
	}
	c.wantQuiet()
	c.ask(101, "GET", "/", true)
	app.want(fmt.Sprintf("HEADERS %d :method=GET :path=/ END", 2*streams+1))
	app.headers(2*streams+1, true, ":status", "200")
	c.want("HEADERS 101 :status=200 END")
	c.data(1, false, strings.Repeat("y", 11)) // 10 were passed on
	c.want("RST 1 FLOW_CONTROL_ERROR")
	app.want("RST 1 CANCEL", "PING")
	w.handler.all[0].wantEnd(t, exchange.Malformed)
	app.must(app.framer.WriteWindowUpdate(0, membudget.WindowBytes))
	app.must(app.framer.WriteWindowUpdate(3, membudget.WindowBytes))
	app.readData(3, membudget.WindowBytes-10)
	c.data(3, true, strings.Repeat("z", 10)) // there is room again, of the stream and of the connection
	app.want("DATA 3 zzzzzzzzzz END")
}

// TestAWindowMayShrink below nothing, and grow again.
func TestAWindowMayShrink(t *testing.T) {
	w := newWorld(t)
	c := w.client(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	c.ask(1, "GET", "/", true)
	app := w.accept()
	app.want("HEADERS 1 :method=GET :path=/ END")
	app.headers(1, false, ":status", "200")
	app.data(1, true, "0123456789abcdef")
	c.want("HEADERS 1 :status=200", "DATA 1 0123456789")
	c.must(c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
	c.must(c.framer.WriteWindowUpdate(1, 10))
	c.wantQuiet()
	c.must(c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 4}))
	c.want("DATA 1 abcd")
	c.must(c.framer.WriteWindowUpdate(1, 10))
	c.want("DATA 1 ef END")
}

// TestPaddingIsGivenBack at once: it takes of the windows and passes nowhere.
func TestPaddingIsGivenBack(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.ask(1, "POST", "/", false)
	app := w.accept(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	app.want("HEADERS 1 :method=POST :path=/")
	for range 2 * membudget.WindowBytes / 256 {
		c.must(c.framer.WriteDataPadded(1, false, nil, make([]byte, 255)))
	}
	c.wantQuiet()
	c.data(1, true, "")
	app.want("DATA 1  END")
}

// streamed has an app answer with n bytes over each of some streams, as windows allow, until its
// connection ends, and counts what it has sent. It returns what ends when the app has.
func streamed(app *end, n int, sent *atomic.Int64) (ended *sync.WaitGroup) {
	ended = new(sync.WaitGroup)
	ended.Go(func() {
		left, window := map[uint32]int{}, map[uint32]int{}
		for {
			f, err := app.framer.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.MetaHeadersFrame:
				left[f.StreamID], window[f.StreamID] = n, answerWindow
				app.headers(f.StreamID, false, ":status", "200")
			case *http2.WindowUpdateFrame:
				window[f.StreamID] += int(f.Increment)
			case *http2.RSTStreamFrame:
				delete(left, f.StreamID)
			}
			for id := range left {
				for n := min(left[id], window[id], frameBytes); n > 0; n = min(left[id], window[id], frameBytes) {
					left[id] -= n
					window[id] -= n
					if err := app.framer.WriteData(id, left[id] == 0, make([]byte, n)); err != nil {
						return
					}
					sent.Add(int64(n))
				}
				if left[id] == 0 {
					delete(left, id)
				}
			}
		}
	})
	return ended
}

// TestAClientThatStopsReadingHoldsUpNoOther, though its windows are wide, and what it reads in the end
// is whole. One that resets its stream or leaves instead ends that at the app.
func TestAClientThatStopsReadingHoldsUpNoOther(t *testing.T) {
	const size = 32 << 20 // is more than the kernel keeps
	for name, then := range map[string]func(w *world, c *end){
		"it reads on": func(w *world, c *end) {
			c.readData(1, size)
			w.handler.all[0].wantEnd(w.T, exchange.Complete)
		},
		"it resets": func(w *world, c *end) {
			c.must(c.framer.WriteRSTStream(1, http2.ErrCodeCancel))
			w.handler.all[0].wantEnd(w.T, exchange.Left)
			c.must(c.framer.WritePing(false, pingData))
			for pong := false; !pong; { // behind what was sent before
				f, err := c.framer.ReadFrame()
				c.must(err)
				_, pong = f.(*http2.PingFrame)
			}
		},
		"it leaves": func(w *world, c *end) {
			c.Close()
			w.handler.all[0].wantEnd(w.T, exchange.Left)
		},
		"it only sends no more": func(w *world, c *end) {
			c.must(c.Conn.(*net.TCPConn).CloseWrite())
			w.handler.all[0].wantEnd(w.T, exchange.Left)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.client(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
			c.must(c.framer.WriteWindowUpdate(0, 1<<30))
			c.ask(1, "GET", "/large", true)
			var sent atomic.Int64
			ended := streamed(w.accept(), size, &sent)
			c.want("HEADERS 1 :status=200")
			w.stuck(&sent, func(c *conn) bool { return c.client.writing })
			other := w.client()
			other.ask(1, "GET", "/small", true)
			app := w.accept()
			app.want("HEADERS 1 :method=GET :path=/small END")
			app.headers(1, true, ":status", "204")
			other.want("HEADERS 1 :status=204 END")
			then(w, c)
			c.Close()
			ended.Wait()
		})
	}
}
