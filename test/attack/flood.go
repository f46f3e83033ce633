package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/sync/errgroup"
)

// A client is what one connection of a flood does, until ctx is done. Its errors are of no
// interest: the sidecar may end the connection.
type clientOf func(ctx context.Context, conn net.Conn) error

// flood opens connections at the same time, holds them, and has another client ask meanwhile.
func flood(n int, hold time.Duration, client clientOf) func(context.Context, *world) (string, error) {
	return floodThen(n, hold, client, 1)
}

// floodThen is flood with another client that asks several times, one after the other.
func floodThen(n int, hold time.Duration, client clientOf, asks int) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		flooding, stop := context.WithCancel(ctx)
		defer stop()
		var opened atomic.Int64
		var all errgroup.Group
		all.SetLimit(n)
		dialing := make(chan struct{}, 256)
		var done sync.WaitGroup
		for range n {
			done.Add(1)
			all.Go(func() error {
				dialing <- struct{}{}
				conn, err := new(net.Dialer).DialContext(flooding, "tcp", w.webAt.Proxy)
				<-dialing
				if err != nil {
					done.Done()
					return nil
				}
				defer conn.Close()
				opened.Add(1)
				_ = conn.SetWriteDeadline(time.Now().Add(20 * time.Second))
				_ = client(flooding, conn)
				done.Done()
				<-flooding.Done()
				return nil
			})
		}
		done.Wait()
		sleepUntil(ctx, time.Now().Add(hold))
		answers := map[string]int{}
		for range asks {
			code, text, err := fetch(ctx, get, "http://"+w.webAt.Proxy+"/", "")
			if err != nil {
				text = err.Error()
			} else {
				text = fmt.Sprintf("%d %s", code, text)
			}
			answers[text]++
		}
		stop()
		_ = all.Wait() // they return no errors
		var then []string
		for _, text := range slices.Sorted(maps.Keys(answers)) {
			then = append(then, fmt.Sprintf("%d times then %s", answers[text], text))
		}
		return fmt.Sprintf("%d connections, %s", opened.Load(), strings.Join(then, ", ")), nil
	}
}

// raw sends a text.
func raw(text string) clientOf {
	return func(_ context.Context, conn net.Conn) error {
		_, err := io.WriteString(conn, text)
		return err
	}
}

// framer begins HTTP/2 on a connection. It reads the answers, so that nothing stops for it.
func framer(conn net.Conn, settings ...http2.Setting) (*http2.Framer, error) {
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return nil, err
	}
	f := http2.NewFramer(conn, nil)
	if err := f.WriteSettings(settings...); err != nil {
		return nil, err
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }() // ends with the connection
	return f, f.WriteSettingsAck()
}

// block encodes fields, each a name and a value.
func block(fields ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i+1 < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // a buffer never fails
	}
	return b.Bytes()
}

// openStream sends a request without a body on a stream, in as many frames as it takes.
func openStream(f *http2.Framer, id uint32, head []byte) error {
	const most = 16 << 10
	first := head[:min(len(head), most)]
	rest := head[len(first):]
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: first, EndStream: true, EndHeaders: len(rest) == 0}); err != nil {
		return err
	}
	for len(rest) > 0 {
		part := rest[:min(len(rest), most)]
		rest = rest[len(part):]
		if err := f.WriteContinuation(id, len(rest) == 0, part); err != nil {
			return err
		}
	}
	return nil
}

// heldStreams opens streams with large heads to what the app answers late.
func heldStreams(streams, size int) clientOf {
	return func(_ context.Context, conn net.Conn) error {
		f, err := framer(conn)
		for i := 0; err == nil && i < streams; i++ {
			head := block(":method", get, ":path", "/slow", ":scheme", "http", ":authority", "a", "x", strings.Repeat("~", size)) // ~ has no shorter code
			err = openStream(f, uint32(2*i+1), head)
		}
		return err
	}
}

// unread asks for large answers and gives no room for them.
func unread(streams int) clientOf {
	return func(_ context.Context, conn net.Conn) error {
		f, err := framer(conn, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
		for i := 0; err == nil && i < streams; i++ {
			err = openStream(f, uint32(2*i+1), block(":method", get, ":path", "/large", ":scheme", "http", ":authority", "a"))
		}
		return err
	}
}

func continuations(n int) clientOf {
	return func(_ context.Context, conn net.Conn) error {
		f, err := framer(conn)
		if err == nil {
			err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(":method", get, ":path", "/", ":scheme", "http", ":authority", "a")})
		}
		part := block("x", strings.Repeat("~", 15<<10))
		for i := 0; err == nil && i < n; i++ {
			err = f.WriteContinuation(1, false, part)
		}
		return err
	}
}

func frames(n int, write func(*http2.Framer) error) clientOf {
	return func(_ context.Context, conn net.Conn) error {
		f, err := framer(conn)
		for i := 0; err == nil && i < n; i++ {
			err = write(f)
		}
		return err
	}
}

// resets opens streams and ends each at once, before it can be answered.
func resets(streams int) clientOf {
	return func(_ context.Context, conn net.Conn) error {
		f, err := framer(conn)
		head := block(":method", get, ":path", "/", ":scheme", "http", ":authority", "a")
		for i := 0; err == nil && i < streams; i++ {
			id := uint32(2*i + 1)
			err = errors.Join(openStream(f, id, head), f.WriteRSTStream(id, http2.ErrCodeCancel))
		}
		return err
	}
}

// bomb puts 4 KB into the table of HPACK and names them many times.
func bomb(n int) clientOf {
	return func(_ context.Context, conn net.Conn) error {
		f, err := framer(conn)
		if err != nil {
			return err
		}
		head := block(":method", get, ":path", "/", ":scheme", "http", ":authority", "a", "x", strings.Repeat("~", 4000))
		const newest = 0x80 | 62 // the index of the field that was added last
		return openStream(f, 1, append(head, bytes.Repeat([]byte{newest}, n)...))
	}
}
