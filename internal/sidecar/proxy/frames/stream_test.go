package frames

import (
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// TestExchangesPass in order, with trailers, informational answers and what goes on both ways.
func TestExchangesPass(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.ask(1, "POST", "/a?b=%zz", false, "x-a", "1", "cookie", "a=1", "cookie", "b=2", "trailer", "X-Sum", "te", "trailers")
	c.data(1, false, "one")
	app := w.accept()
	app.want("HEADERS 1 :method=POST :path=/a?b=%zz cookie=a=1 cookie=b=2 te=trailers x-a=1 trailer=x-sum", "DATA 1 one")
	app.headers(1, false, ":status", "103", "link", "x")
	app.headers(1, false, ":status", "200", "content-type", "application/grpc", "connection", "x")
	app.data(1, false, "two")
	c.want("HEADERS 1 :status=103 link=x", "HEADERS 1 :status=200 content-type=application/grpc", "DATA 1 two")
	c.data(1, false, "three")
	app.want("DATA 1 three")
	c.headers(1, true, "x-sum", "7", "x-own", "no")
	app.want("HEADERS 1 x-sum=7 END")
	app.headers(1, true, "grpc-status", "0")
	c.want("HEADERS 1 grpc-status=0 END")
	x := w.handler.last()
	x.wantEnd(t, exchange.Complete)
	if x.status != 200 || x.body != 3 || x.trailer != "0" {
		t.Errorf("the handler saw %d, %d bytes, %q", x.status, x.body, x.trailer)
	}
	c.ask(3, "GET", "/", true)
	app.want("HEADERS 3 :method=GET :path=/ END")
	app.headers(3, true, ":status", "204", "x-show", "1")
	c.want("HEADERS 3 :status=204 x-show=1 x-shown=yes END")
}

// TestAnAnswerEndsItsRequest: what the client still sends goes nowhere, and harms no other stream.
func TestAnAnswerEndsItsRequest(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.ask(1, "POST", "/", false)
	app := w.accept()
	app.want("HEADERS 1 :method=POST :path=/")
	app.headers(1, false, ":status", "413")
	app.data(1, true, "enough")
	c.want("HEADERS 1 :status=413", "DATA 1 enough END", "RST 1 NO_ERROR")
	app.want("RST 1 NO_ERROR", "PING")
	c.data(1, false, "more")
	c.headers(1, true, "x-sum", "7")
	c.ask(3, "GET", "/", true)
	app.want("HEADERS 3 :method=GET :path=/ END")
	w.handler.all[0].wantEnd(t, exchange.Complete)
}

// TestResetsPass in both directions, with their codes.
func TestResetsPass(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.ask(1, "POST", "/", false)
	app := w.accept()
	app.want("HEADERS 1 :method=POST :path=/")
	c.must(c.framer.WriteRSTStream(1, http2.ErrCodeCancel))
	app.want("RST 1 CANCEL", "PING")
	w.handler.last().wantEnd(t, exchange.Left)

	c.ask(3, "GET", "/", true)
	app.want("HEADERS 3 :method=GET :path=/ END")
	app.headers(3, false, ":status", "200")
	app.data(3, false, "a part")
	app.must(app.framer.WriteRSTStream(3, http2.ErrCodeEnhanceYourCalm))
	c.want("HEADERS 3 :status=200", "DATA 3 a part", "RST 3 ENHANCE_YOUR_CALM")
	w.handler.last().wantEnd(t, exchange.Broken)

	c.ask(5, "GET", "/", true)
	app.want("HEADERS 5 :method=GET :path=/ END")
	app.must(app.framer.WriteRSTStream(5, http2.ErrCodeInternal))
	c.want("HEADERS 5 :status=502 END")
	w.handler.last().wantEnd(t, exchange.NoAnswer)
}

// TestAnAnswerThatIsBrokenOffArrives up to where it was, though the client's window is small.
func TestAnAnswerThatIsBrokenOffArrives(t *testing.T) {
	w := newWorld(t)
	c := w.client(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 3})
	c.ask(1, "GET", "/", true)
	app := w.accept()
	app.want("HEADERS 1 :method=GET :path=/ END")
	app.headers(1, false, ":status", "200", "content-length", "100")
	app.data(1, false, "abcdef")
	app.Close()
	c.want("HEADERS 1 :status=200 content-length=100", "DATA 1 abc")
	c.must(c.framer.WriteWindowUpdate(1, 3))
	c.want("DATA 1 def", "RST 1 INTERNAL_ERROR")
	w.handler.last().wantEnd(t, exchange.Broken)
}

// TestALengthIsKept: bodies that are longer or shorter than their head says are not passed as
// complete.
func TestALengthIsKept(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.ask(1, "POST", "/", false, "content-length", "4")
	app := w.accept()
	app.want("HEADERS 1 :method=POST :path=/ content-length=4")
	c.data(1, false, "12345")
	c.want("RST 1 PROTOCOL_ERROR")
	app.want("RST 1 CANCEL", "PING")
	w.handler.last().wantEnd(t, exchange.Malformed)

	c.ask(3, "POST", "/", false, "content-length", "4")
	app.want("HEADERS 3 :method=POST :path=/ content-length=4")
	c.data(3, true, "123")
	c.want("HEADERS 3 :status=400 END")
	app.want("RST 3 CANCEL")
	w.handler.last().wantEnd(t, exchange.Malformed)

	for i, body := range []string{"123", "12345"} {
		id := uint32(5 + 2*i)
		c.ask(id, "GET", "/", true)
		app.want("HEADERS " + itoa(id) + " :method=GET :path=/ END")
		app.headers(id, false, ":status", "200", "content-length", "4")
		app.data(id, true, body)
		c.want("HEADERS "+itoa(id)+" :status=200 content-length=4", "RST "+itoa(id)+" INTERNAL_ERROR")
		app.want("RST " + itoa(id) + " PROTOCOL_ERROR")
		w.handler.last().wantEnd(t, exchange.Broken)
	}
}

// TestACutEndsARequest with an answer where none has begun, and otherwise by a reset.
func TestACutEndsARequest(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.ask(1, "GET", "/", true)
	app := w.accept()
	app.want("HEADERS 1 :method=GET :path=/ END")
	w.handler.last().cut()
	c.want("HEADERS 1 :status=503 END")
	app.want("RST 1 CANCEL", "PING")
	w.handler.last().wantEnd(t, exchange.Cut)

	c.ask(3, "GET", "/", true)
	app.want("HEADERS 3 :method=GET :path=/ END")
	app.headers(3, false, ":status", "200")
	c.want("HEADERS 3 :status=200")
	w.handler.last().cut()
	c.want("RST 3 INTERNAL_ERROR")
	w.handler.last().wantEnd(t, exchange.Cut)
	w.handler.last().cut() // it has ended

	c.ask(5, "GET", "/late", true)
	c.want("HEADERS 5 :status=503 END")
	w.handler.last().wantEnd(t, exchange.Cut)
	app.want("RST 3 CANCEL")
	app.wantQuiet()
}

// TestRefusalsAreAnswered without the app, and leave the connection as it is.
func TestRefusalsAreAnswered(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.ask(1, "GET", "/refused", true)
	c.want("HEADERS 1 :status=429 retry-after=1", "DATA 1 too many END")
	c.ask(3, "POST", "/refused", false)
	c.want("HEADERS 3 :status=429 retry-after=1", "DATA 3 too many END", "RST 3 NO_ERROR")
	c.ask(5, "HEAD", "/refused", true)
	c.want("HEADERS 5 :status=429 retry-after=1 END")
	c.ask(7, "GET", "/aborted", true)
	c.want("RST 7 INTERNAL_ERROR")
	c.ask(9, "GET", "/defect", true)
	c.want("RST 9 INTERNAL_ERROR")
	c.ask(11, "GET", "/", true, "x", strings.Repeat("~", 20<<10), "x", strings.Repeat("~", 15<<10))
	c.want("HEADERS 11 :status=431 content-type=text/html", "DATA 11 63 bytes END")
}
