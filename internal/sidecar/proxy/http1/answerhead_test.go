package http1

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// TestAnswersArePassedOn with their edits, or are a bad gateway.
func TestAnswersArePassedOn(t *testing.T) {
	for name, tc := range map[string]struct{ answer, want string }{
		"as it is":             {"HTTP/1.1 200 Own Words\r\nX-a: b\r\nDate: d\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 Own Words\r\nX-A: b\r\nDate: d\r\nContent-Length: 2\r\n\r\nok"},
		"without a phrase":     {"HTTP/1.1 299\r\nDate: d\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 299 \r\nDate: d\r\nContent-Length: 0\r\n\r\n"},
		"lines end in LF":      {"HTTP/1.1 200 OK\nDate: d\nContent-Length: 2\n\nok", "HTTP/1.1 200 OK\r\nDate: d\r\nContent-Length: 2\r\n\r\nok"},
		"a folded field":       {"HTTP/1.1 200 OK\r\nDate: d\r\nX: a\r\n  b\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nDate: d\r\nX: a    b\r\nContent-Length: 0\r\n\r\n"},
		"fields of one hop":    {"HTTP/1.1 200 OK\r\nDate: d\r\nKeep-Alive: x\r\nConnection: X-Hop\r\nX-Hop: y\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nDate: d\r\nContent-Length: 0\r\n\r\n"},
		"chunks":               {"HTTP/1.1 200 OK\r\nDate: d\r\nTransfer-Encoding: chunked\r\n\r\n1;x\r\na\r\n1\r\nb\r\n0\r\nX-Sum: 1\r\n\r\n", "HTTP/1.1 200 OK\r\nDate: d\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-Sum: 1\r\n\r\n"},
		"a length and chunks":  {"HTTP/1.1 200 OK\r\nDate: d\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nDate: d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		"the same length":      {"HTTP/1.1 200 OK\r\nDate: d\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nDate: d\r\nContent-Length: 0\r\n\r\n"},
		"what is shown":        {"HTTP/1.1 200 OK\r\nX-Show: 1\r\nDate: d\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nDate: d\r\nX-Show: 1\r\nX-Shown: yes\r\nContent-Length: 0\r\n\r\n"},
		"two lengths":          {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", ""},
		"a length of letters":  {"HTTP/1.1 200 OK\r\nContent-Length: a\r\n\r\nab", ""},
		"another coding":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nab", ""},
		"another version":      {"HTTP/2.0 200 OK\r\n\r\n", ""},
		"no version":           {"200 OK\r\n\r\n", ""},
		"a status of letters":  {"HTTP/1.1 2x0 OK\r\n\r\n", ""},
		"a short status":       {"HTTP/1.1 20 OK\r\n\r\n", ""},
		"a long status":        {"HTTP/1.1 2000 OK\r\n\r\n", ""},
		"a field without name": {"HTTP/1.1 200 OK\r\n: x\r\n\r\n", ""},
		"blanks in a name":     {"HTTP/1.1 200 OK\r\nX y: x\r\n\r\n", ""},
		"a control in a value": {"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n", ""},
		"a CR in a value":      {"HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n", ""},
		"a tunnel":             {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1<<30, func(c net.Conn, _ int) bool {
				_, _ = io.WriteString(c, tc.answer)
				return false
			})
			c, in := w.dial()
			w.write(c, getRoot)
			_ = c.(*net.TCPConn).CloseWrite() //nolint:forcetypeassert // it was dialled
			all, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(all); tc.want != "" && got != tc.want || tc.want == "" && !strings.HasPrefix(got, "HTTP/1.1 502 ") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestTheHeadOfAnAnswerIsBounded.
func TestTheHeadOfAnAnswerIsBounded(t *testing.T) {
	for size, want := range map[int]int{maxAnswerHead / 2: http.StatusOK, maxAnswerHead: http.StatusBadGateway} {
		w := newWorld(t, 1<<30, func(c net.Conn, _ int) bool {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: "+strings.Repeat("y", size)+"\r\n\r\n")
			return true
		})
		c, in := w.dial()
		if status := w.ask(c, in, getRoot); status != want {
			t.Errorf("%d bytes: got %d, want %d", size, status, want)
		}
	}
}

// TestHowAnExchangeEnds is seen by its handler.
func TestHowAnExchangeEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		request, answer string
		want            exchange.Ending
	}{
		"answered":            {getRoot, fine, exchange.Complete},
		"not answered":        {getRoot, "", exchange.NoAnswer},
		"broken in its body":  {getRoot, fine[:len(fine)-1], exchange.Broken},
		"broken in a chunk":   {getRoot, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", exchange.Broken},
		"chunks that are not": {getRoot, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxy\r\n", exchange.Broken},
		"malformed":           {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", fine, exchange.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1<<30, func(c net.Conn, _ int) bool {
				_, _ = io.WriteString(c, tc.answer)
				return false
			})
			c, in := w.dial()
			w.write(c, tc.request)
			_ = c.(*net.TCPConn).CloseWrite() //nolint:forcetypeassert // it was dialled
			_, _ = io.ReadAll(in)
			if got := <-w.handler.endings; got != tc.want {
				t.Errorf("it ends by %d, want %d", got, tc.want)
			}
		})
	}
}
