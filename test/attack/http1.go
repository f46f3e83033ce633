package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/proxy/framing/framingtest"
)

// smuggled is a request that must never be seen by itself.
const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"

// http1Rows are bytes of clients of HTTP/1.1, by which they try to have the sidecar and the app
// see different requests.
func http1Rows() (rows []row) {
	post := func(fields ...string) string {
		return "POST / HTTP/1.1\r\nHost: a\r\n" + strings.Join(append(fields, ""), "\r\n") + "\r\n"
	}
	get := func(fields ...string) string {
		return "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Join(append(fields, ""), "\r\n") + "\r\n"
	}
	const (
		chunked = "Transfer-Encoding: chunked"
		length  = "Content-Length: 5"
		ended   = "0\r\n\r\n"
	)
	refused := func(name, sent string, status ...string) {
		rows = append(rows, row{name: name, as: outside, do: wire(sent), must: or("nothing reaches the app; "+strings.Join(status, " or "), prefixed("0 requests reach the app; answered ", status)...)})
	}
	passes := func(name string, n int, sent string) {
		rows = append(rows, row{name: name, as: outside, do: wire(sent), must: be(fmt.Sprintf("%d reach the app, as they were sent", n), fmt.Sprintf("%d requests reach the app as they were sent", n))})
	}
	// A request that breaks off in its body was begun. It never looks complete to the app.
	broken := func(name, sent string) {
		rows = append(rows, row{name: name, as: outside, do: wire(sent), must: be("no whole request reaches the app", "0 requests reach the app")})
	}

	// Where a body ends.
	refused("Content-Length before Transfer-Encoding", post("Content-Length: 0", chunked)+ended+smuggled, "400")
	refused("Transfer-Encoding before Content-Length", post(chunked, "Content-Length: 4")+ended+smuggled, "400")
	refused("two lengths that differ", post(length, "Content-Length: 0")+"hello"+smuggled, "400")
	refused("two lengths in one field", post("Content-Length: 5, 0")+"hello"+smuggled, "400")
	refused("a length with a sign", post("Content-Length: +5")+"hello"+smuggled, "400")
	refused("a hexadecimal length", post("Content-Length: 0x5")+"hello"+smuggled, "400")
	refused("a length beyond 64 bits", post("Content-Length: 18446744073709551621")+"hello"+smuggled, "400")
	refused("a coding that hides behind a vertical tab", post(length, "Transfer-Encoding: \x0bchunked")+ended+smuggled, "400")
	refused("a coding behind white space before the colon", post(length, "Transfer-Encoding : chunked")+ended+smuggled, "400")
	refused("a coding in a folded line", post(length, "Transfer-Encoding:\r\n chunked")+ended+smuggled, "400")
	refused("a coding behind a bare line feed", post(length, "X: y\nTransfer-Encoding: chunked")+ended+smuggled, "400")
	refused("a coding behind a bare carriage return", post(length, "X: y\rTransfer-Encoding: chunked")+ended+smuggled, "400")
	refused("a coding that is unknown, before chunked", post("Transfer-Encoding: x, chunked")+ended+smuggled, "400")
	refused("chunked twice", post("Transfer-Encoding: chunked, chunked")+ended+smuggled, "400")
	refused("a coding with a NUL", post(length, "Transfer-Encoding: chunked\x00")+ended+smuggled, "400")
	refused("a coding in HTTP/1.0", "POST / HTTP/1.0\r\nHost: a\r\n"+chunked+"\r\n\r\n"+ended+smuggled, "400")
	passes("a GET with a body that is a request", 1, get(fmt.Sprintf("Content-Length: %d", len(smuggled)))+smuggled)
	passes("a POST without a length, then a request", 2, post()+get())

	// Where a chunk ends.
	for _, c := range [][2]string{
		{"the size of a chunk in C's notation", "0x5\r\nhello\r\n"},
		{"a negative size of a chunk", "-5\r\nhello\r\n"},
		{"a size of a chunk beyond 64 bits", "10000000000000005\r\nhello\r\n"},
		{"a chunk that is longer than its size", "5\r\nhelloX" + "\r\n"},
		{"an extension with a bare line feed", "5;a=b\nc\r\nhello\r\n"},
		{"a line feed alone behind a size", "5\nhello\r\n"},
		{"an extension with white space, which others take for a size", "5 ;a\r\nhello\r\n"},
	} {
		broken(c[0], post(chunked)+c[1]+ended+smuggled)
	}
	broken("a trailer that frames", post(chunked)+"0\r\nContent-Length: 50\r\n\r\n"+smuggled)
	broken("a trailer that names a host", post(chunked)+"0\r\nHost: b\r\n\r\n"+smuggled)

	// Whom and what a request is for.
	refused("two hosts", get("Host: b")+smuggled, "400")
	refused("no host", "GET / HTTP/1.1\r\n\r\n"+smuggled, "400")
	refused("a host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"+smuggled, "400")
	refused("a target that is not a path", "GET smuggled HTTP/1.1\r\nHost: a\r\n\r\n"+smuggled, "400")
	refused("a target with a space", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"+smuggled, "400")
	refused("a version that does not exist", "GET / HTTP/1.10\r\nHost: a\r\n\r\n"+smuggled, "400")
	refused("a tunnel by CONNECT", "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n"+smuggled, "501")
	refused("a Connection that takes off X-User", get("Connection: X-User", "X-User: eve")+smuggled, "400")
	refused("a head of 60 KB", get("X: "+strings.Repeat("y", 60_000))+smuggled, "431")
	refused("10,000 fields", "GET / HTTP/1.1\r\nHost: a\r\n"+strings.Repeat("X: y\r\n", 10_000)+"\r\n"+smuggled, "431")
	refused("an Expect that is unknown", post(length, "Expect: 200-ok")+"hello"+smuggled, "417")
	passes("an upgrade to HTTP/2", 1, get("Connection: Upgrade, HTTP2-Settings, close", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"))
	rows = append(rows,
		row{
			name: "a field that claims to be the sidecar's", as: outside, do: wireFields(get("X-Weir-Key: admin", "Connection: close"), "X-Weir-Key"),
			must: be("it is taken off", `"X-Weir-Key" at the app: []`),
		},
		row{
			name: "a field with an underscore, which CGI takes for another", as: outside, do: wireFields(get("X_User: eve", "Connection: close"), "X_User"),
			must: be("it is taken off", `"X_User" at the app: []`),
		},
		row{
			name: "an X-Forwarded-For of the client's", as: outside, do: wireFields(get("X-Forwarded-For: 10.9.8.7", "Connection: close"), "X-Forwarded-For"),
			must: be("the client's address is behind it", `"X-Forwarded-For" at the app: ["10.9.8.7, 127.`),
		},
		row{
			name: "frames behind an upgrade that the app declines", as: outside,
			do:   wire(get("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==") + smuggled),
			must: be("they are a request, and are judged as one", "2 requests reach the app as they were sent"),
		},
		row{
			name: "the address of the admin port as a target", as: outside, do: wire("GET http://127.0.0.1:15020/config HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
			must: be("the app is asked, and nothing else", "1 requests reach the app as they were sent; GET /config"),
		},
	)
	return rows
}

func prefixed(prefix string, all []string) (out []string) {
	for _, text := range all {
		out = append(out, prefix+text)
	}
	return out
}

// wireTime is how long a connection may stay open behind a row.
const wireTime = 15 * time.Second

// wire sends bytes over a connection to the sidecar of the app that speaks HTTP/1.1, and returns
// what reached the app and how the client was answered.
func wire(sent string) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		seen, answered, err := w.exchange(ctx, sent)
		if err != nil {
			return "", err
		}
		forwarded := "as they were sent"
		strictly, _ := framingtest.ReadAll([]byte(sent))
		var lines []string
		for i := range seen.Requests {
			if i >= len(strictly) || !seen.Requests[i].IsForwarded(&strictly[i]) {
				forwarded = "but not as they were sent"
			}
			lines = append(lines, seen.Requests[i].Method+" "+seen.Requests[i].Target)
		}
		if seen.Broken != "" {
			return fmt.Sprintf("the app cannot read %q", seen.Broken), nil
		}
		answer := fmt.Sprintf("%d requests reach the app", len(seen.Requests))
		if len(seen.Requests) > 0 {
			answer += " " + forwarded + "; " + strings.Join(lines, ", ")
		}
		return answer + "; answered " + answered, nil
	}
}

// wireFields sends a request, and returns the values of a field that reach the app.
func wireFields(sent, field string) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		seen, answered, err := w.exchange(ctx, sent)
		if err != nil {
			return "", err
		}
		if len(seen.Requests) != 1 {
			return fmt.Sprintf("%d requests reach the app; answered %s", len(seen.Requests), answered), nil
		}
		return fmt.Sprintf("%q at the app: %q", field, seen.Requests[0].Values(field)), nil
	}
}

// exchange sends bytes and reads answers until the connection ends.
func (w *world) exchange(ctx context.Context, sent string) (seen framingtest.Seen, answered string, err error) {
	w.wire.Take()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", w.wireAt.Proxy)
	if err != nil {
		return seen, "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(wireTime))
	whole := make(chan struct{})
	go func() {
		defer close(whole)
		_, _ = io.WriteString(conn, sent) // the sidecar need not read a refused row to its end
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	in := bufio.NewReader(conn)
	var codes []string
	for {
		resp, err := http.ReadResponse(in, &http.Request{Method: http.MethodGet})
		if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
			return seen, "", fmt.Errorf("the connection is neither answered nor closed in %s", wireTime)
		}
		if err != nil {
			break
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode >= http.StatusOK {
			codes = append(codes, fmt.Sprint(resp.StatusCode))
		}
	}
	<-whole
	return w.wire.Take(), strings.Join(codes, ", "), nil
}
