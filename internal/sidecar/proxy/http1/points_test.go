package http1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// ends are how one side of a connection may end what it sends.
var ends = map[string]func(c net.Conn){
	"closed": func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() }, //nolint:forcetypeassert // it is one
	"reset": func(c net.Conn) {
		_ = c.(*net.TCPConn).SetLinger(0) //nolint:forcetypeassert // it is one
		_ = c.Close()
	},
}

// TestARequestThatEndsAnywhereIsNotBegun: the app sees all of it or none, whichever byte was the last. A client that
// has sent all and closes its sending side is answered.
func TestARequestThatEndsAnywhereIsNotBegun(t *testing.T) {
	for form, request := range map[string]string{
		"no body":     getRoot,
		"a length":    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789",
		"in chunks":   "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n",
		"a trailer":   "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n1\r\n0\r\n0\r\nA: b\r\n\r\n",
		"two of them": getRoot + "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n0",
	} {
		for how, end := range ends {
			t.Run(form+", "+how, func(t *testing.T) {
				w := newWorld(t, 1<<30, say(fine))
				begun, most := 0, 0
				for sent := range len(request) + 1 {
					c, in := w.dial()
					w.write(c, request[:sent])
					end(c)
					got, _ := io.ReadAll(in)
					whole := strings.Count(request[:sent], getRoot)
					if sent == len(request) {
						whole = strings.Count(request, "Host:")
					}
					begun, most = begun+len(w.begun), most+whole
					for len(w.begun) > 0 {
						<-w.begun
					}
					if answers := bytes.Count(got, []byte("HTTP/1.1 200 OK")); how == "closed" && (answers != whole || begun != most) {
						t.Errorf("%d bytes: %d answers, want %d: %q; the app saw %d requests, want %d", sent, answers, whole, got, begun, most)
					}
				}
				w.server.Close()
				if begun += len(w.begun); begun > most {
					t.Errorf("the app saw %d requests, and at most %d were whole", begun, most)
				}
			})
		}
	}
}

// TestAnAnswerThatEndsAnywhereIsNotWhole to its client, whichever byte was the last. The bytes that came arrive.
func TestAnAnswerThatEndsAnywhereIsNotWhole(t *testing.T) {
	const data = "0123456789"
	for form, answer := range map[string]string{
		"a length":  "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n" + data,
		"in chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n",
	} {
		for how, end := range ends {
			t.Run(form+", "+how, func(t *testing.T) {
				var said atomic.Int64
				w := newWorld(t, 1<<30, func(c net.Conn, _ int) bool {
					_, _ = io.WriteString(c, answer[:said.Load()])
					end(c)
					return false
				})
				head := strings.Index(answer, "\r\n\r\n") + len("\r\n\r\n")
				for n := range len(answer) + 1 {
					said.Store(int64(n))
					if problem := w.readCut(answer[head:max(head, n)], n >= head, n == len(answer), how == "closed"); problem != "" {
						t.Errorf("%d bytes: %s", n, problem)
					}
				}
			})
		}
	}
}

// readCut asks for an answer of whose body the app says a part. It returns what is wrong with what arrives. Where
// the app resets the connection, the kernel may drop what it has said.
func (w *world) readCut(said string, begun, whole, kept bool) (problem string) {
	c, _ := w.dial()
	defer c.Close()
	w.write(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if errors.Is(err, io.ErrUnexpectedEOF) && begun && said == "" {
		return "" // a head is sent with the first part of its body
	} else if err != nil {
		return fmt.Sprint(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	switch {
	case res.StatusCode == http.StatusBadGateway && err == nil && (!kept || !begun):
		return ""
	case res.StatusCode != http.StatusOK || !begun:
		return fmt.Sprintf("%s, %q, %v", res.Status, body, err)
	case whole && err == nil && string(body) == "0123456789":
		return ""
	case err == nil || whole && kept || !strings.HasPrefix("0123456789", string(body)):
		return fmt.Sprintf("%q, %v", body, err)
	case kept && res.ContentLength > 0 && string(body) != said:
		return fmt.Sprintf("of %q arrived %q", said, body)
	}
	return ""
}
