package frames

import (
	"context"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

// A spoken call is answered with its message. One that begins with wait is answered once go may be
// read from, and stuck is so even when its client has left.
type spoken struct {
	message string
	world   *callWorld
}

// Now implements Call.
func (s spoken) Now() (Reply, bool) {
	switch {
	case strings.HasPrefix(s.message, "wait"), s.message == "stuck":
		return Reply{}, false
	case s.message == "error":
		return Reply{Code: codes.NotFound, Text: "50 % of \u00fc\n\xff"}, true
	}
	return s.echo(), true
}

// Wait implements Call.
func (s spoken) Wait(ctx context.Context) Reply {
	s.world.asked <- s.message
	if s.message == "stuck" {
		<-s.world.on
		return s.echo()
	}
	select {
	case <-s.world.on:
		return s.echo()
	case <-ctx.Done():
		s.world.asked <- "!" + s.message
		return Reply{Code: codes.DeadlineExceeded, Text: ctx.Err().Error()}
	}
}

func (s spoken) echo() Reply {
	return Reply{Message: []byte(strings.Repeat("\x00", MessageRoom) + s.message)}
}

// A callWorld is a server of calls.
type callWorld struct {
	*world
	on    chan struct{} // closed: nothing waits any more
	asked chan string   // the calls that wait, and those whose wait was ended behind an !
}

const spokenPath = "/test.Service/Speak"

func newCallWorld(t *testing.T, budget *membudget.Budget) *callWorld {
	t.Helper()
	w := &callWorld{on: make(chan struct{}), asked: make(chan string, 2000)}
	speak := func(message []byte) Call { return spoken{string(message), w} }
	w.world = newWorldOf(t, budget, &Calls{MessageBytes: 100_000, Methods: map[string]Method{spokenPath: speak}})
	return w
}

// call sends the head of a call.
func (e *end) call(stream uint32, fields ...string) {
	e.Helper()
	e.ask(stream, "POST", spokenPath, false, append([]string{"content-type", "application/grpc", "te", "trailers"}, fields...)...)
}

// framed returns a message with its prefix.
func framed(message string) string {
	n := len(message)
	return string([]byte{0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + message
}

func (e *end) wantAnswer(stream uint32, message string) {
	e.Helper()
	id := itoa(stream)
	e.want("HEADERS "+id+" :status=200 content-type=application/grpc", "DATA "+id+" "+framed(message), "HEADERS "+id+" grpc-status=0 END")
}

// TestCallsAreAnswered whatever pieces their messages come in, at once or when they may be.
func TestCallsAreAnswered(t *testing.T) {
	w := newCallWorld(t, membudget.New(1<<30))
	c := w.client()
	c.call(1)
	c.data(1, true, framed("hello"))
	c.wantAnswer(1, "hello")
	c.call(3)
	for _, b := range framed("pieces") {
		c.data(3, false, string(b))
	}
	c.data(3, true, "")
	c.wantAnswer(3, "pieces")
	c.call(5, "grpc-timeout", "10S", "grpc-encoding", "identity")
	c.data(5, false, framed("trailed"))
	c.headers(5, true, "x-sum", "1")
	c.wantAnswer(5, "trailed")
	c.call(7)
	c.data(7, true, framed(""))
	c.wantAnswer(7, "")
	c.call(9)
	c.data(9, true, framed("wait"))
	<-w.asked
	c.call(11)
	c.data(11, true, framed("before"))
	c.wantAnswer(11, "before")
	close(w.on)
	c.wantAnswer(9, "wait")
	c.call(13)
	c.data(13, true, framed("error"))
	c.want("HEADERS 13 :status=200 content-type=application/grpc grpc-status=5 grpc-message=50 %25 of %C3%BC%0A%EF%BF%BD END")
	w.wantWindows()
}

// TestManyCallsWait, more than there are goroutines that are kept.
func TestManyCallsWait(t *testing.T) {
	w := newCallWorld(t, membudget.New(1<<30))
	c := w.client()
	const calls = 3 * keptWorkers
	for round := range uint32(2) {
		for i := range uint32(calls) {
			id := 1 + 2*(round*calls+i)
			c.call(id)
			c.data(id, true, framed("wait"))
		}
		for range calls {
			<-w.asked
		}
		if round == 0 {
			close(w.on)
		}
		for range 3 * calls {
			c.read()
		}
	}
	if n := w.server.workers.kept.Load(); n > keptWorkers {
		t.Errorf("%d goroutines are kept", n)
	}
}

// TestOtherRequestsAreRefused as gRPC does.
func TestOtherRequestsAreRefused(t *testing.T) {
	const grpc = "application/grpc"
	for name, tc := range map[string]struct {
		method, path string
		fields       []string
		want         string
	}{
		"another method":  {"PUT", spokenPath, []string{"content-type", grpc}, ":status=405 content-type=application/grpc grpc-status=13 grpc-message=Received a HEADERS frame with :method \"PUT\" which should be POST END"},
		"another type":    {"POST", spokenPath, []string{"content-type", "text/plain"}, ":status=415 content-type=application/grpc grpc-status=3 grpc-message=invalid gRPC request content-type \"text/plain\" END"},
		"a similar type":  {"POST", spokenPath, []string{"content-type", grpc + "-web"}, ":status=415 content-type=application/grpc grpc-status=3 grpc-message=invalid gRPC request content-type \"application/grpc-web\" END"},
		"no type":         {"POST", spokenPath, nil, ":status=415 content-type=application/grpc grpc-status=3 grpc-message=invalid gRPC request content-type \"\" END"},
		"two hosts":       {"POST", spokenPath, []string{"content-type", grpc, "host", "a", "host", "b"}, ":status=400 content-type=application/grpc grpc-status=13 grpc-message=num values of :authority: 1, num values of host: 2, both must only have 1 value as per HTTP/2 spec END"},
		"a bad time-out":  {"POST", spokenPath, []string{"content-type", grpc, "grpc-timeout", "1x"}, ":status=400 content-type=application/grpc grpc-status=13 grpc-message=malformed grpc-timeout: \"1x\" is not up to eight digits and one of H, M, S, m, u and n END"},
		"no time":         {"POST", spokenPath, []string{"content-type", grpc, "grpc-timeout", "0n"}, ":status=200 content-type=application/grpc grpc-status=4 grpc-message=context deadline exceeded END"},
		"another service": {"POST", "/test.Other/Speak", []string{"content-type", grpc}, ":status=200 content-type=application/grpc grpc-status=12 grpc-message=unknown service test.Other END"},
		"an unknown call": {"POST", "/test.Service/Shout", []string{"content-type", grpc + "+proto"}, ":status=200 content-type=application/grpc grpc-status=12 grpc-message=unknown method Shout for service test.Service END"},
		"no service":      {"POST", "/Speak", []string{"content-type", grpc}, ":status=200 content-type=application/grpc grpc-status=12 grpc-message=malformed method name: \"/Speak\" END"},
		"gzip":            {"POST", spokenPath, []string{"content-type", grpc + ";x", "grpc-encoding", "gzip"}, ":status=200 content-type=application/grpc grpc-status=12 grpc-message=grpc: Decompressor is not installed for grpc-encoding \"gzip\" END"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCallWorld(t, membudget.New(1<<30))
			c := w.client()
			c.ask(1, tc.method, tc.path, false, tc.fields...)
			c.want("HEADERS 1 "+tc.want, "RST 1 NO_ERROR")
			c.call(3)
			c.data(3, true, framed("next"))
			c.wantAnswer(3, "next")
		})
	}
	t.Run("a field of a connection", func(t *testing.T) {
		c := newCallWorld(t, membudget.New(1<<30)).client()
		c.call(1, "connection", "close")
		c.want("RST 1 PROTOCOL_ERROR")
	})
	t.Run("a large head", func(t *testing.T) {
		c := newCallWorld(t, membudget.New(1<<30)).client()
		c.call(1, "x-a", strings.Repeat("x", 20<<10), "x-b", strings.Repeat("x", 20<<10))
		c.want("RST 1 FRAME_SIZE_ERROR")
	})
	t.Run("no host", func(t *testing.T) {
		c := newCallWorld(t, membudget.New(1<<30)).client()
		c.headers(1, true, ":method", "POST", ":scheme", "http", ":path", spokenPath, "content-type", grpc)
		c.want("HEADERS 1 :status=400 content-type=application/grpc grpc-status=13 grpc-message=no host or :authority header present END")
	})
}

// TestMessagesAreWhole, one in a call, not compressed and not too long.
func TestMessagesAreWhole(t *testing.T) {
	const head = "HEADERS 1 :status=200 content-type=application/grpc grpc-status="
	for name, tc := range map[string]struct {
		parts []string
		ends  bool
		want  []string
	}{
		"none":                    {[]string{""}, true, []string{head + "13 grpc-message=cardinality violation: received no request message from non-client-streaming RPC END"}},
		"half a prefix":           {[]string{"\x00\x00"}, true, []string{head + "13 grpc-message=unexpected EOF END"}},
		"cut":                     {[]string{framed("hello")[:7]}, true, []string{head + "13 grpc-message=unexpected EOF END"}},
		"two":                     {[]string{framed("one") + framed("two")}, true, []string{head + "13 grpc-message=cardinality violation: received multiple request messages for non-client-streaming RPC END"}},
		"two in turn":             {[]string{framed("one"), framed("two")}, false, []string{head + "13 grpc-message=cardinality violation: received multiple request messages for non-client-streaming RPC END", "RST 1 NO_ERROR"}},
		"compressed":              {[]string{"\x01" + framed("one")[1:]}, true, []string{head + "13 grpc-message=grpc: compressed flag set with identity or empty encoding END"}},
		"of another kind":         {[]string{"\x02" + framed("one")[1:]}, true, []string{head + "13 grpc-message=grpc: received unexpected payload format 2 END"}},
		"too long":                {[]string{"\x00\x00\x01\x86\xa1"}, true, []string{head + "8 grpc-message=grpc: received message larger than max (100001 vs. 100000) END"}},
		"too long, and not ended": {[]string{"\x00\x00\x01\x86\xa1"}, false, []string{head + "8 grpc-message=grpc: received message larger than max (100001 vs. 100000) END", "RST 1 NO_ERROR"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCallWorld(t, membudget.New(1<<30))
			c := w.client()
			c.call(1)
			for i, part := range tc.parts {
				c.data(1, tc.ends && i == len(tc.parts)-1, part)
			}
			c.want(tc.want...)
			c.call(3)
			c.data(3, true, framed("next"))
			c.wantAnswer(3, "next")
			w.wantWindows()
		})
	}
}

// TestACallEndsWithItsTime, and with its client.
func TestACallEndsWithItsTime(t *testing.T) {
	w := newCallWorld(t, membudget.New(1<<30))
	c := w.client()
	c.call(1, "grpc-timeout", "1n")
	c.data(1, true, framed("wait for ever"))
	c.want("HEADERS 1 :status=200 content-type=application/grpc grpc-status=4 grpc-message=context deadline exceeded END")
	c.call(3)
	c.data(3, true, framed("wait alone"))
	for _, want := range []string{"wait for ever", "!wait for ever", "wait alone"} {
		if got := <-w.asked; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	c.must(c.framer.WriteRSTStream(3, http2.ErrCodeCancel))
	if got := <-w.asked; got != "!wait alone" {
		t.Errorf("got %q", got)
	}
	c.call(5)
	c.data(5, true, framed("wait at the end"))
	<-w.asked
	c.Close()
	if got := <-w.asked; got != "!wait at the end" {
		t.Errorf("got %q", got)
	}
}

// TestCallsThatWereResetCount until they are decided.
func TestCallsThatWereResetCount(t *testing.T) {
	w := newCallWorld(t, membudget.New(1<<30))
	c := w.client()
	for i := range uint32(maxStreams) {
		id := 1 + 2*i
		c.call(id)
		c.data(id, true, framed("stuck"))
		<-w.asked
		c.must(c.framer.WriteRSTStream(id, http2.ErrCodeCancel))
	}
	c.call(2*maxStreams + 1)
	c.want("RST 501 REFUSED_STREAM")
	close(w.on)
}

// TestCallsAreAdmittedToMemory, their messages too, and give back what they took.
func TestCallsAreAdmittedToMemory(t *testing.T) {
	const unavailable = " :status=200 content-type=application/grpc grpc-status=14 grpc-message=the sidecar has no memory left for the call END"
	w := newCallWorld(t, membudget.New(2*membudget.ConnectionBytes+10*membudget.CallBytes))
	c := w.client()
	waiting, id := 0, uint32(1)
	for refused := false; !refused; id += 2 {
		c.call(id)
		c.data(id, true, framed("wait"))
		c.must(c.framer.WritePing(false, pingData))
		answer := c.read()
		if refused = answer != "PONG"; !refused {
			waiting++
			continue
		}
		if want := "HEADERS " + itoa(id) + unavailable; answer != want {
			t.Fatalf("got %q, want %q", answer, want)
		}
		for answer != "PONG" {
			answer = c.read()
		}
	}
	if waiting == 0 || waiting > 10 {
		t.Errorf("%d calls are admitted", waiting)
	}
	close(w.on)
	for range 3 * waiting {
		c.read()
	}
	c.call(id)
	c.data(id, true, framed("more"))
	c.wantAnswer(id, "more")
	c.call(id + 2)
	c.data(id+2, false, framed(strings.Repeat("x", 99_000))[:20])
	c.want("HEADERS "+itoa(id+2)+unavailable, "RST "+itoa(id+2)+" NO_ERROR")
}

// TestAnAnswerKeepsToTheWindow of its client, and others do not wait for it.
func TestAnAnswerKeepsToTheWindow(t *testing.T) {
	w := newCallWorld(t, membudget.New(1<<30))
	c := w.client(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	c.call(1)
	c.data(1, true, framed("a long one"))
	c.want("HEADERS 1 :status=200 content-type=application/grpc", "DATA 1 "+framed("a long one")[:10])
	c.call(3)
	c.data(3, true, framed("short"))
	c.wantAnswer(3, "short")
	c.must(c.framer.WriteWindowUpdate(1, 100))
	c.want("DATA 1 "+framed("a long one")[10:], "HEADERS 1 grpc-status=0 END")
}
