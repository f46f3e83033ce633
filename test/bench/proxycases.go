package main

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/weir-dev/weir/test/bench/app"
	"github.com/weir-dev/weir/test/bench/traffic"
)

// A proxyCase is what goes through the proxies.
type proxyCase struct {
	name string
	grpc bool
	dial func(w *way) (traffic.Load, error)
}

// A content is what goes over each connection again and again.
type content struct {
	name    string
	request []byte // of HTTP/1.1
	kind    traffic.Kind
}

var (
	request = []byte("GET /path?query=1 HTTP/1.1\r\nHost: app.example\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n")

	small        = content{request: request}
	largeAnswer  = content{name: ", answers of 64 KiB", request: []byte("GET /64k HTTP/1.1\r\nHost: app.example\r\n\r\n")}
	largeRequest = content{name: ", POST of 64 KiB", request: slices.Concat(
		fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: app.example\r\nContent-Length: %d\r\n\r\n", app.LargeBytes), bytes.Repeat([]byte("x"), app.LargeBytes))}

	called = []byte(app.Admitted)
	large  = app.Message(app.LargeBytes)

	unary        = content{name: "unary", kind: traffic.Kind{Path: "/bench.Bench/Call", Message: called, Sends: 1, Counts: 1}}
	unaryLarge   = content{name: "unary, 64 KiB both ways", kind: traffic.Kind{Path: app.Large, Message: large, Sends: 1, Counts: 1}}
	fromClient   = content{name: "100 messages from the client", kind: traffic.Kind{Path: "/bench.Bench/Up", Message: called, Sends: app.Messages, Counts: app.Messages}}
	fromServer   = content{name: "100 messages from the server", kind: traffic.Kind{Path: app.Down, Message: called, Sends: 1, Counts: app.Messages}}
	bothWays     = content{name: "streams both ways", kind: traffic.Kind{Path: app.Echo, Message: called, Counts: 1}}
	bothWayLarge = content{name: "streams both ways, 64 KiB", kind: traffic.Kind{Path: app.Echo, Message: large, Counts: 1}}
)

// overHTTP1 sends a request over each of n connections.
func overHTTP1(n int, c content) proxyCase {
	return proxyCase{
		name: fmt.Sprintf("HTTP/1.1, %s%s", counted(n, "connection"), c.name),
		dial: func(w *way) (traffic.Load, error) { return traffic.DialHTTP1(w.address, n, c.request) },
	}
}

// overGRPC makes calls over each of n connections. In a closed loop that many are always under way
// over each, and that many streams are open in both.
func overGRPC(n, calls int, c content) proxyCase {
	name := fmt.Sprintf("gRPC %s, %s", c.name, counted(n, "connection"))
	if calls > 0 {
		name += fmt.Sprintf(" with %s each", counted(calls, "call"))
	}
	return proxyCase{
		name: name, grpc: true,
		dial: func(w *way) (traffic.Load, error) { return traffic.DialGRPC(w.calls, n, max(1, calls), c.kind) },
	}
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return grouped(int64(n)) + " " + what
}

// open opens the loads of a case, one for each way. They are closed by a function that is never nil.
func (w *ways) open(c proxyCase) (loads []traffic.Load, closeAll func(), err error) {
	closeAll = func() {
		for _, l := range loads {
			l.Close()
		}
	}
	for _, way := range w.all {
		l, err := c.dial(way)
		if err != nil {
			return nil, closeAll, fmt.Errorf("%s: %w", way.name, err)
		}
		loads = append(loads, l)
	}
	return loads, closeAll, nil
}

// hangUp closes the connections that the ways were opened with.
func (w *ways) hangUp() {
	for _, way := range w.all {
		way.callers.Close()
	}
}
