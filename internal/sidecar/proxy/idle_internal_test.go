package proxy

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestRequestsGoOverAnotherConnection when the app ends one that served before, as long as
// that does no harm.
func TestRequestsGoOverAnotherConnection(t *testing.T) {
	for name, tc := range map[string]struct {
		method, key string
		first, want int // the request that the app does not answer; how many it begins
	}{
		"GET":                        {http.MethodGet, "", 2, 3},
		"POST with a key":            {http.MethodPost, "Idempotency-Key", 2, 3},
		"POST with a key of its own": {http.MethodPost, "X-Idempotency-Key", 2, 3},
		"POST":                       {http.MethodPost, "", 2, 2},
		"GET over a new one":         {http.MethodGet, "", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			app := play(t, func(c net.Conn, request int) bool { return request != tc.first && say(fine)(c, 0) })
			d := toward(t, app.address)
			var err error
			for range tc.first {
				var res *http.Response
				r := request(t, t.Context(), tc.method, app.address)
				if tc.key != "" {
					r.Header.Set(tc.key, "7")
				}
				if res, err = d.RoundTrip(r); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
			}
			if n := len(app.begun); n != tc.want || (err == nil) != (tc.want > tc.first) {
				t.Errorf("the app began %d requests, want %d; the last: %v", n, tc.want, err)
			}
		})
	}
}

// A dead connection takes nothing.
type dead struct{ net.Conn }

func (dead) Write([]byte) (int, error) { return 0, errors.New("broken") }
func (dead) Close() error              { return nil }

// TestARequestOfWhichNothingWasSentGoesOverAnotherConnection, whatever it does.
func TestARequestOfWhichNothingWasSentGoesOverAnotherConnection(t *testing.T) {
	app := play(t, say(fine))
	d := toward(t, app.address)
	for range 3 {
		d.idle.put(newLink(dead{}, &d.idle))
	}
	if _, body := fetch(t, d, http.MethodPost); body != "ok" {
		t.Errorf("got %q", body)
	}
}

// TestWhatTheAppSaysUnaskedIsNoAnswer to the next request.
func TestWhatTheAppSaysUnaskedIsNoAnswer(t *testing.T) {
	conns := make(chan net.Conn, 2)
	app := play(t, func(c net.Conn, _ int) bool {
		conns <- c
		return say(fine)(c, 0)
	})
	d := toward(t, app.address)
	fetch(t, d, http.MethodPost)
	idle := d.idle.links[0]
	if _, err := io.WriteString(<-conns, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"); err != nil {
		t.Fatal(err)
	}
	for silent(idle.conn) { // until it arrived
		runtime.Gosched()
	}
	if _, body := fetch(t, d, http.MethodPost); body != "ok" {
		t.Errorf("got %q", body)
	}
	<-app.over
}

// kept returns a link whose connection records that it is closed.
func kept(i *idleLinks) (*link, *told) {
	c := new(told)
	return newLink(c, i), c
}

type told struct {
	net.Conn
	closed atomic.Bool
}

func (c *told) Close() error {
	c.closed.Store(true)
	return nil
}

func TestTheConnectionUsedLastIsTakenFirst(t *testing.T) {
	i := new(idleLinks)
	defer i.close()
	first, _ := kept(i)
	second, _ := kept(i)
	i.put(first)
	i.put(second)
	if a, b, c := i.take(), i.take(), i.take(); a != second || b != first || c != nil {
		t.Errorf("they came as %p, %p, %p", a, b, c)
	}
}

func TestIdleConnectionsAreBounded(t *testing.T) {
	i := new(idleLinks)
	for n := range maxIdle + 10 {
		l, _ := kept(i)
		if i.put(l) != (n < maxIdle) {
			t.Fatalf("connection %d of %d", n, maxIdle)
		}
	}
	i.close()
	if l, _ := kept(i); i.put(l) || i.take() != nil {
		t.Error("it keeps one after it was closed")
	}
}

func TestAProxyThatIsClosedKeepsNoConnection(t *testing.T) {
	p := New(Config{Target: play(t, say(fine)).address, Log: slog.New(slog.DiscardHandler)})
	d, ok := p.app.Transport.(*direct)
	if !ok {
		t.Fatalf("%T", p.app.Transport)
	}
	fetch(t, d, http.MethodGet)
	if p.Close(); waiting(d) > 0 || !d.idle.closed {
		t.Error("it keeps one")
	}
}

// TestIdleConnectionsAreClosedInTime, and what is closed with them is not those in use.
func TestIdleConnectionsAreClosedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := new(idleLinks)
		all := make([]*told, 5)
		for n := range all {
			var l *link
			l, all[n] = kept(i)
			i.put(l)
			time.Sleep(idleHTTP1 / 10)
		}
		last := i.take()
		time.Sleep(idleHTTP1/2 + time.Millisecond) // a second after the first
		closed := func() (n int) {
			synctest.Wait()
			for _, c := range all {
				if c.closed.Load() {
					n++
				}
			}
			return n
		}
		if n := closed(); n != 1 {
			t.Errorf("after %v %d are closed, want 1", idleHTTP1, n)
		}
		time.Sleep(idleHTTP1/4 - 2*time.Millisecond)
		if n := closed(); n != 1 {
			t.Errorf("it wakes for each of them: %d are closed", n)
		}
		time.Sleep(idleHTTP1 / 2)
		if n := closed(); n != 4 {
			t.Errorf("%d are closed in the end, want 4", n)
		}
		if i.put(last); i.take() != last {
			t.Error("one that was in use does not come back")
		}
		i.put(last)
		time.Sleep(2 * idleHTTP1)
		if n := closed(); n != 5 {
			t.Errorf("%d are closed when all are idle, want 5", n)
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.sweeper != nil {
			t.Error("the timer runs on with nothing to close")
		}
	})
}
