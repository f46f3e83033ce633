package conformance

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// TestWebSocket sends the frames of each case to an echo server, directly and through each
// target, and compares the bytes that come back. The cases follow the chapters of the
// Autobahn test suite.
func TestWebSocket(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(echoMessages))
	t.Cleanup(app.Close)
	cases := websocketCases()
	of := strings.TrimPrefix(app.URL, "http://")
	want := make([][]byte, len(cases))
	for i, c := range cases {
		var err error
		if want[i], err = c.play(t.Context(), of); err != nil {
			t.Fatalf("%s: the app: %v", c.name, err)
		}
		if len(want[i]) == 0 && !c.cut {
			t.Fatalf("%s: the app says nothing, so the case shows nothing", c.name)
		}
	}
	all := inFrontOf(t, proxyHTTP1, func() string { return of }, func(address string) error {
		_, err := cases[0].play(t.Context(), address)
		return err
	})
	for _, to := range all {
		t.Run(to.name, func(t *testing.T) {
			t.Parallel()
			passed := 0
			for i, c := range cases {
				got, err := c.play(t.Context(), to.address)
				switch {
				case err == nil && bytes.Equal(got, want[i]):
					passed++
				case to.isOurs():
					t.Errorf("%s: got %d bytes (%v), want %d", c.name, len(got), err, len(want[i]))
				}
			}
			note("WebSocket, by chapters of Autobahn", to.name, passed, len(cases))
		})
	}
}

// echoMessages sends each message back, compressed when the client can have it so.
func echoMessages(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover, CompressionThreshold: 1})
	if err != nil {
		return
	}
	defer c.CloseNow()
	c.SetReadLimit(-1)
	for {
		kind, message, err := c.Read(r.Context())
		if err != nil {
			return
		}
		if c.Write(r.Context(), kind, message) != nil {
			return
		}
	}
}

// Opcodes (RFC 6455, section 5.2).
const (
	continued = 0x0
	text      = 0x1
	binaryOp  = 0x2
	closing   = 0x8
	ping      = 0x9
	pong      = 0xa
	final     = 0x80
	reserved1 = 0x40
	reserved2 = 0x20
	reserved3 = 0x10
)

// A websocketCase is the frames that a client sends.
type websocketCase struct {
	name    string
	sent    []byte
	chopped int  // bytes of a write; 0: all at once
	early   bool // they come with the request
	deflate bool // the client offers compression
	cut     bool // the client closes its side in the middle of a frame
}

// frame returns a frame as a client sends it; first has the opcode and the bits beside it.
func frame(first byte, payload []byte) []byte {
	mask := []byte{0x12, 0x34, 0x56, 0x78}
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	b = append(b, mask...)
	for i, c := range payload {
		b = append(b, c^mask[i%4])
	}
	return b
}

func closeFrame(code uint16, reason string) []byte {
	return frame(final|closing, append(binary.BigEndian.AppendUint16(nil, code), reason...))
}

// deflated returns a message as permessage-deflate sends it (RFC 7692, section 7.2.1).
func deflated(message []byte) []byte {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is one
	}
	_, _ = w.Write(message)
	_ = w.Flush()
	return bytes.TrimSuffix(b.Bytes(), []byte{0, 0, 0xff, 0xff})
}

// websocketCases returns all cases, first one that shows that the way to the app is open.
func websocketCases() []websocketCase {
	bye := closeFrame(1000, "")
	var all []websocketCase
	add := func(name string, frames ...[]byte) *websocketCase {
		all = append(all, websocketCase{name: name, sent: bytes.Join(frames, nil)})
		return &all[len(all)-1]
	}
	filled := func(n int) []byte { return bytes.Repeat([]byte("*"), n) }

	for _, n := range []int{0, 1, 125, 126, 127, 128, 65535, 65536} {
		for name, op := range map[string]byte{"text": text, "binary": binaryOp} {
			add(fmt.Sprintf("1 framing: %s of %d", name, n), frame(final|op, filled(n)), bye)
			add(fmt.Sprintf("1 framing: %s of %d in pieces", name, n), frame(final|op, filled(n)), bye).chopped = 997
		}
	}
	add("1 framing: byte by byte", frame(final|text, filled(200)), bye).chopped = 1
	add("2 ping: empty", frame(final|ping, nil), bye)
	add("2 ping: of 125", frame(final|ping, filled(125)), bye)
	add("2 ping: of 126, which is too long", frame(final|ping, filled(126)))
	add("2 ping: ten", bytes.Repeat(frame(final|ping, []byte("p")), 10), bye)
	add("2 pong: nobody asked", frame(final|pong, []byte("p")), frame(final|text, []byte("hello")), bye)
	for name, bit := range map[string]byte{"first": reserved1, "second": reserved2, "third": reserved3} {
		add("3 reserved bits: the "+name, frame(final|bit|text, filled(3)))
	}
	for _, op := range []byte{3, 4, 5, 6, 7, 0xb, 0xc, 0xd, 0xe, 0xf} {
		add(fmt.Sprintf("4 opcodes: %#x", op), frame(final|op, filled(3)))
	}
	add("5 fragments: two", frame(text, []byte("frag")), frame(final|continued, []byte("ment")), bye)
	add("5 fragments: a ping between", frame(text, []byte("frag")), frame(final|ping, []byte("p")), frame(final|continued, []byte("ment")), bye)
	add("5 fragments: empty ones", frame(text, nil), frame(continued, nil), frame(final|continued, nil), bye)
	add("5 fragments: a thousand", frame(binaryOp, filled(1)), bytes.Repeat(frame(continued, filled(9)), 1000), frame(final|continued, nil), bye)
	add("5 fragments: of a ping", frame(ping, []byte("frag")))
	add("5 fragments: nothing to continue", frame(final|continued, []byte("ment")))
	add("5 fragments: a message in the middle of another", frame(text, []byte("frag")), frame(final|text, []byte("ment")))
	add("6 UTF-8: of all lengths", frame(final|text, []byte("aé€𝄞")), bye)
	add("6 UTF-8: a character in two fragments", frame(text, []byte("\xe2\x82")), frame(final|continued, []byte("\xac")), bye)
	for _, code := range []uint16{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999} {
		add(fmt.Sprintf("7 close: code %d", code), closeFrame(code, "bye"))
	}
	for _, code := range []uint16{0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65535} {
		add(fmt.Sprintf("7 close: code %d, which nobody may send", code), closeFrame(code, ""))
	}
	add("7 close: without a code", frame(final|closing, nil))
	add("7 close: half a code", frame(final|closing, []byte{3}))
	add("7 close: the longest reason", closeFrame(1000, string(filled(123))))
	add("7 close: in two pieces", bye).chopped = 3
	for _, n := range []int{1 << 20, 4 << 20} {
		add(fmt.Sprintf("9 limits: a message of %d", n), frame(final|binaryOp, filled(n)), bye)
		add(fmt.Sprintf("9 limits: %d in fragments", n),
			frame(binaryOp, filled(n/64)), bytes.Repeat(frame(continued, filled(n/64)), 63), frame(final|continued, nil), bye)
	}
	add("9 limits: a thousand messages", bytes.Repeat(frame(final|text, filled(64)), 1000), bye)
	add("10 early: a message with the request", frame(final|text, []byte("early")), bye).early = true
	add("10 early: 100 messages with the request", bytes.Repeat(frame(final|binaryOp, filled(300)), 100), bye).early = true
	add("10 end: in the middle of a frame", frame(final|text, filled(100))[:50]).cut = true
	for _, n := range []int{16, 1000, 100_000} {
		message := bytes.Repeat([]byte("weir "), n/5)
		add(fmt.Sprintf("12 compression: of %d", n), frame(final|reserved1|text, deflated(message)), bye).deflate = true
	}
	add("12 compression: offered and not used", frame(final|text, []byte("plain")), bye).deflate = true
	add("12 compression: in fragments", frame(reserved1|text, deflated([]byte("hello hello"))[:4]),
		frame(final|continued, deflated([]byte("hello hello"))[4:]), bye).deflate = true
	return all
}

// play opens a WebSocket, sends the frames, and returns all that comes back.
func (c *websocketCase) play(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	request := "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	if c.deflate {
		request += "Sec-WebSocket-Extensions: permessage-deflate\r\n"
	}
	first := []byte(request + "\r\n")
	if c.early {
		first = append(first, c.sent...)
	}
	if _, err := conn.Write(first); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		return nil, fmt.Errorf("answered %s", answer.Status)
	}
	wrote := make(chan error, 1)
	go func() { wrote <- c.write(conn) }()
	got, err := io.ReadAll(r)
	return got, errors.Join(err, <-wrote)
}

// write sends the frames, unless they came with the request.
func (c *websocketCase) write(conn net.Conn) error {
	if c.early {
		return nil
	}
	step := len(c.sent)
	if c.chopped > 0 {
		step = c.chopped
	}
	for at := 0; at < len(c.sent); at += step {
		if _, err := conn.Write(c.sent[at:min(at+step, len(c.sent))]); err != nil {
			return err
		}
	}
	if c.cut {
		return conn.(*net.TCPConn).CloseWrite()
	}
	return nil
}
