package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// holdTime is how long connections of a flood are held.
	holdTime = 3 * time.Second
	briefly  = 100 * time.Millisecond
	get      = "GET"
	post     = "POST"
)

// http2Rows are of clients that flood a sidecar, or try HTTP/2 for what HTTP/1.1 refuses.
func http2Rows() []row {
	still := func(words string) must { return be(words+"; others are served", "then 200") }
	bounded := or("memory stays bounded; others are served, or refused with an answer", "then 200", "then 503")
	one := func(name string, m must, fields ...string) row {
		return row{name: name, as: outside, do: h2(fields...), must: m}
	}
	refused := or("it is refused, and does not reach the app", "0 requests reach the app")
	return []row{
		{name: "10 connections with 250 streams of 27 KB of headers each, which the app answers late", as: outside, long: true, do: flood(10, holdTime, heldStreams(250, 27<<10)), must: bounded},
		{name: "40 connections with 250 streams of 27 KB of headers each, which the app answers late", as: outside, long: true, do: flood(40, holdTime, heldStreams(250, 27<<10)), must: bounded},
		{name: "10,000 connections that are idle", as: outside, long: true, do: flood(10_000, holdTime, raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n")), must: bounded},
		{name: "3,000 heads of HTTP/1.1 of 30 KB that do not end", as: outside, long: true, do: flood(3000, holdTime, raw("GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("y", 30<<10))), must: bounded},
		{name: "300 connections with 4 answers of 4 MiB each that are never read", as: outside, long: true, do: flood(300, holdTime, unread(4)), must: bounded},
		{name: "1,000 connections that are idle", as: outside, long: true, do: flood(1000, holdTime, raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n")), must: still("memory stays bounded")},
		{name: "500 heads of HTTP/1.1 of 30 KB that do not end", as: outside, long: true, do: flood(500, holdTime, raw("GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("y", 30<<10))), must: still("memory stays bounded")},
		{name: "500 bodies that come slowly", as: outside, long: true, do: flood(500, holdTime, raw("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("x", 1000))), must: bounded},
		{name: "10 connections with 4 answers of 4 MiB each that are never read", as: outside, long: true, do: flood(10, holdTime, unread(4)), must: still("memory stays bounded")},
		{name: "100 clients that ask for 4 MiB, twice each, and read nothing", as: outside, long: true, do: flood(100, holdTime, raw(strings.Repeat("GET /large HTTP/1.1\r\nHost: a\r\n\r\n", 2))), must: still("memory stays bounded")},
		{name: "10 connections that go on with a head of 10 MB", as: outside, do: flood(10, briefly, continuations(640)), must: still("the connections end")},
		{name: "20 connections that change settings 5,000 times", as: outside, do: flood(20, briefly, frames(5000, func(f *http2.Framer) error { return f.WriteSettings() })), must: still("memory stays bounded")},
		{name: "20 connections that ping 5,000 times", as: outside, do: flood(20, briefly, frames(5000, func(f *http2.Framer) error { return f.WritePing(false, [8]byte{}) })), must: still("memory stays bounded")},
		{name: "20 connections with 5,000 frames of kinds that do not exist", as: outside, do: flood(20, briefly, frames(5000, func(f *http2.Framer) error { return f.WriteRawFrame(0xee, 0, 0, make([]byte, 64)) })), must: still("memory stays bounded")},
		{name: "20 connections that depend on each other 5,000 times", as: outside, do: flood(20, briefly, frames(5000, func(f *http2.Framer) error {
			return f.WritePriority(1, http2.PriorityParam{StreamDep: 3, Weight: 255})
		})), must: still("memory stays bounded")},
		{name: "3 connections that open and reset 2,000 streams each", as: outside, do: floodThen(3, 0, resets(2000), 20), must: be("others are served, and never refused", "20 times then 200")},
		{name: "a window of more than 2^31", as: outside, do: flood(1, briefly, frames(2, func(f *http2.Framer) error { return f.WriteWindowUpdate(0, 1<<31-1) })), must: still("the connection ends")},
		{name: "one byte of a table that stands for 4 KB, 60,000 times", as: outside, do: flood(10, briefly, bomb(60_000)), must: still("the connections end")},
		one("a coding over HTTP/2", refused, ":method", post, ":path", "/", ":scheme", "http", ":authority", "a", "transfer-encoding", "chunked"),
		one("a Connection over HTTP/2 that takes off X-User", refused, ":method", get, ":path", "/", ":scheme", "http", ":authority", "a", "connection", "x-user", "x-user", "eve"),
		one("a line break in a value over HTTP/2", refused, ":method", get, ":path", "/", ":scheme", "http", ":authority", "a", "x", "y\r\nTransfer-Encoding: chunked"),
		one("a line break in the path over HTTP/2", refused, ":method", get, ":path", "/ HTTP/1.1\r\nX: y", ":scheme", "http", ":authority", "a"),
		one("a space in the method over HTTP/2", refused, ":method", "GET / HTTP/1.1", ":path", "/", ":scheme", "http", ":authority", "a"),
		one("a path that is not one over HTTP/2", refused, ":method", get, ":path", "smuggled", ":scheme", "http", ":authority", "a"),
		one("two paths over HTTP/2", refused, ":method", get, ":path", "/", ":path", "/smuggled", ":scheme", "http", ":authority", "a"),
		one("a name in upper case over HTTP/2", refused, ":method", get, ":path", "/", ":scheme", "http", ":authority", "a", "X-User", "eve"),
		one("a length over HTTP/2 without that body", be("the app sees an empty body, whose length is 0", "the last had length 0"), ":method", post, ":path", "/", ":scheme", "http", ":authority", "a", "content-length", "5"),
		one("a tunnel by CONNECT over HTTP/2", refused, ":method", "CONNECT", ":authority", "a:80"),
	}
}

// h2 sends one request over HTTP/2, and returns how many reached the app.
func h2(fields ...string) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		before := w.web.complete.Load()
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", w.webAt.Proxy)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(wireTime))
		if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
			return "", err
		}
		f := http2.NewFramer(conn, conn)
		if err := errors.Join(f.WriteSettings(), openStream(f, 1, block(fields...))); err != nil {
			return "", err
		}
		ended := "the connection ends"
		for over := false; !over; {
			frame, err := f.ReadFrame()
			if err != nil {
				break
			}
			switch frame := frame.(type) {
			case *http2.RSTStreamFrame:
				ended, over = "the stream is reset: "+frame.ErrCode.String(), true
			case *http2.GoAwayFrame:
				ended, over = "the connection is ended: "+frame.ErrCode.String(), true
			case *http2.HeadersFrame:
				heads, err := hpack.NewDecoder(4<<10, nil).DecodeFull(frame.HeaderBlockFragment())
				if err != nil {
					return "", err
				}
				ended, over = "answered "+heads[0].Value, frame.StreamEnded()
			case *http2.DataFrame:
				over = frame.StreamEnded()
			}
		}
		return fmt.Sprintf("%d requests reach the app; the last had %v; %s", w.web.complete.Load()-before, w.web.last.Load(), ended), nil
	}
}
