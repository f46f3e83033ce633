package sidecar

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// tunnelApp echoes what it hears over a connection that changed its protocol.
func tunnelApp(w http.ResponseWriter, _ *http.Request) {
	if conn := switchProtocols(w); conn != nil {
		defer conn.Close()
		_, _ = io.Copy(conn, conn)
	}
}

// switchProtocols greets the client over a connection that is not HTTP from then on. It
// is nil when there is none.
func switchProtocols(w http.ResponseWriter) net.Conn {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nwelcome\n")
	return conn
}

// openTunnel changes the protocol, and reads the app's greeting.
func openTunnel(t *testing.T, address string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn := dial(t, address)
	_, _ = io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	reader := bufio.NewReader(conn)
	res, err := http.ReadResponse(reader, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %v, %v", res, err)
	}
	if line, err := reader.ReadString('\n'); line != "welcome\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	return conn, reader
}

// TestTunnelsCarryAnyBytes both ways: once the protocol has changed they are not HTTP.
func TestTunnelsCarryAnyBytes(t *testing.T) {
	_, address := inFrontOf(t, http.HandlerFunc(tunnelApp))
	conn, reader := openTunnel(t, address)
	for i := range 256 {
		said := []byte{0x81, 0x02, byte(i), '\n'}
		if _, err := conn.Write(said); err != nil {
			t.Fatal(err)
		}
		heard := make([]byte, len(said))
		if _, err := io.ReadFull(reader, heard); err != nil || string(heard) != string(said) {
			t.Fatalf("said %q, heard %q, %v", said, heard, err)
		}
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	if rest, err := io.ReadAll(reader); len(rest) > 0 || err != nil {
		t.Errorf("at the end heard %q, %v", rest, err)
	}
}

// TestTunnelsAreCutAtTheEndOfTheGracePeriod, and not before: until then they carry on,
// while no new client is served.
func TestTunnelsAreCutAtTheEndOfTheGracePeriod(t *testing.T) {
	s, address := inFrontOf(t, http.HandlerFunc(tunnelApp))
	conn, reader := openTunnel(t, address)
	grace, end := context.WithCancel(t.Context())
	var draining sync.WaitGroup
	draining.Go(func() { s.drain(grace) })
	for refused := false; !refused; {
		if late, err := new(net.Dialer).DialContext(t.Context(), "tcp", address); err != nil {
			refused = true
		} else {
			late.Close()
		}
	}
	_, _ = io.WriteString(conn, "still here\n")
	if line, err := reader.ReadString('\n'); line != "still here\n" {
		t.Errorf("got %q, %v", line, err)
	}
	end()
	draining.Wait()
	if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the tunnel goes on: %v", err)
	}
}

// TestClientsOfTunnelsHoldUpNoDrain though they neither end their connection nor read.
func TestClientsOfTunnelsHoldUpNoDrain(t *testing.T) {
	gone := func(conn net.Conn, _ func()) { conn.Close() }
	floods := func(conn net.Conn, stuck func()) {
		defer conn.Close()
		for chunk, err := make([]byte, 1<<20), error(nil); err == nil; {
			waits := time.AfterFunc(200*time.Millisecond, stuck)
			_, err = conn.Write(chunk)
			waits.Stop()
		}
	}
	for name, app := range map[string]func(net.Conn, func()){"silent, and the app is gone": gone, "not reading": floods} {
		t.Run(name, func(t *testing.T) {
			ready := make(chan struct{})
			stuck := sync.OnceFunc(func() { close(ready) })
			s, address := inFrontOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if conn := switchProtocols(w); conn != nil {
					app(conn, stuck)
				}
			}))
			_, reader := openTunnel(t, address)
			if strings.HasPrefix(name, "silent") {
				if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
					t.Fatalf("the end of the app is reported as %v", err)
				}
				stuck()
			}
			<-ready
			grace, end := context.WithCancel(t.Context())
			end()
			drained := make(chan struct{})
			go func() {
				s.drain(grace)
				close(drained)
			}()
			select {
			case <-drained:
			case <-time.After(3 * time.Second): // less than a silent client has
				t.Fatal("the drain goes on")
			}
		})
	}
}

// calls is a gRPC service with a method of each kind. Each sends a header and a trailer.
func calls(ended chan<- error) *grpc.ServiceDesc {
	stream := func(name string, client, server bool, talk func(grpc.ServerStream) error) grpc.StreamDesc {
		return grpc.StreamDesc{StreamName: name, ClientStreams: client, ServerStreams: server, Handler: func(_ any, s grpc.ServerStream) error {
			_ = s.SetHeader(metadata.Pairs("x-header", name))
			s.SetTrailer(metadata.Pairs("x-trailer-bin", name))
			return talk(s)
		}}
	}
	return &grpc.ServiceDesc{ServiceName: "test.Calls", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{
		stream("Unary", false, false, func(s grpc.ServerStream) error {
			in := new(wrapperspb.StringValue)
			if err := s.RecvMsg(in); err != nil {
				return err
			}
			return s.SendMsg(in)
		}),
		stream("Collect", true, false, func(s grpc.ServerStream) error {
			all := ""
			for {
				in := new(wrapperspb.StringValue)
				if err := s.RecvMsg(in); errors.Is(err, io.EOF) {
					return s.SendMsg(wrapperspb.String(all))
				} else if err != nil {
					return err
				}
				all += in.GetValue()
			}
		}),
		stream("Count", false, true, func(s grpc.ServerStream) error {
			in := new(wrapperspb.StringValue)
			if err := s.RecvMsg(in); err != nil {
				return err
			}
			for i := range 3 {
				if err := s.SendMsg(wrapperspb.String(strconv.Itoa(i))); err != nil {
					return err
				}
			}
			return status.Error(codes.DataLoss, "that is all")
		}),
		stream("Echo", true, true, func(s grpc.ServerStream) error {
			for {
				in := new(wrapperspb.StringValue)
				if err := s.RecvMsg(in); err != nil {
					if !errors.Is(err, io.EOF) {
						ended <- s.Context().Err()
						return err
					}
					return nil
				}
				if err := s.SendMsg(in); err != nil {
					return err
				}
			}
		}),
	}}
}

// TestCallsOfEveryKindPass with their header, trailer and status.
func TestCallsOfEveryKindPass(t *testing.T) {
	ended := make(chan error, 1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	app := grpc.NewServer()
	app.RegisterService(calls(ended), nil)
	var serving sync.WaitGroup
	serving.Go(func() { _ = app.Serve(listener) })
	t.Cleanup(func() {
		app.Stop()
		serving.Wait()
	})
	_, address := inFrontOfAddress(t, listener.Addr().String())
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })

	for _, tc := range []struct {
		method    string
		say, hear []string
		code      codes.Code
	}{
		{"Unary", []string{"hello"}, []string{"hello"}, codes.OK},
		{"Collect", []string{"a", "b", "c"}, []string{"abc"}, codes.OK},
		{"Count", []string{""}, []string{"0", "1", "2"}, codes.DataLoss},
		{"Echo", []string{"x", "y"}, []string{"x", "y"}, codes.OK},
	} {
		t.Run(tc.method, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			s, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/test.Calls/"+tc.method)
			if err != nil {
				t.Fatal(err)
			}
			heard := 0
			hear := func() error {
				out := new(wrapperspb.StringValue)
				if err := s.RecvMsg(out); err != nil {
					return err
				}
				if heard == len(tc.hear) || out.GetValue() != tc.hear[heard] {
					t.Errorf("message %d is %q", heard, out.GetValue())
				}
				heard++
				return nil
			}
			for _, said := range tc.say {
				if err := s.SendMsg(wrapperspb.String(said)); err != nil {
					t.Fatal(err)
				}
				if tc.method == "Echo" { // each is answered before the next is sent
					if err := hear(); err != nil {
						t.Fatal(err)
					}
				}
			}
			_ = s.CloseSend()
			for err = nil; err == nil; err = hear() {
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			header, _ := s.Header()
			if status.Code(err) != tc.code || heard != len(tc.hear) || header.Get("x-header")[0] != tc.method || s.Trailer().Get("x-trailer-bin")[0] != tc.method {
				t.Errorf("got %d messages, %v, header %v, trailer %v", heard, err, header, s.Trailer())
			}
		})
	}
	t.Run("a cancelled one", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/test.Calls/Echo")
		if err != nil {
			t.Fatal(err)
		}
		out := new(wrapperspb.StringValue)
		if err := errors.Join(s.SendMsg(wrapperspb.String("x")), s.RecvMsg(out)); err != nil {
			t.Fatal(err)
		}
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the app's call ended by %v", err)
			}
		case <-time.After(patience):
			t.Error("the app's call goes on")
		}
	})
}

// TestCallsOverAnAppOfFewStreams pass to the last byte, also beside others that are cancelled.
func TestCallsOverAnAppOfFewStreams(t *testing.T) {
	const connections, callers, rounds = 3, 20, 5
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	app := grpc.NewServer(grpc.MaxConcurrentStreams(callers / 2))
	app.RegisterService(calls(make(chan error, connections*callers*rounds)), nil)
	var serving, all sync.WaitGroup
	serving.Go(func() { _ = app.Serve(listener) })
	t.Cleanup(func() {
		app.Stop()
		serving.Wait()
	})
	_, address := inFrontOfAddress(t, listener.Addr().String())
	for range connections {
		conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for caller := range callers {
			all.Go(func() {
				for round := range rounds {
					if err := echoes(t.Context(), conn, caller*1000, (caller+round)%4 == 0); err != nil {
						t.Errorf("caller %d: %v", caller, err)
					}
				}
			})
		}
	}
	all.Wait()
}

// echoes has messages of growing sizes repeated, and cancels the call behind the third if it is to.
func echoes(ctx context.Context, conn *grpc.ClientConn, size int, cancels bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/test.Calls/Echo")
	if err != nil {
		return err
	}
	for n := range 5 {
		if n == 3 && cancels {
			return nil
		}
		said, heard := wrapperspb.String(strings.Repeat("x", n*size)), new(wrapperspb.StringValue)
		if err := errors.Join(s.SendMsg(said), s.RecvMsg(heard)); err != nil {
			return err
		}
		if heard.GetValue() != said.GetValue() {
			return errors.New("another message came back")
		}
	}
	_ = s.CloseSend()
	if err := s.RecvMsg(new(wrapperspb.StringValue)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("at the end: %w", err)
	}
	return nil
}
