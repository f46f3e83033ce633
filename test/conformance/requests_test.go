package conformance

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/weir-dev/weir/internal/sidecar/proxy/framing/framingtest"
)

// A row is the bytes that a client sends over a connection, and the outcome that they must have.
type row struct {
	name, sent string
	passes     int    // requests that reach the app, each complete and with these fields
	status     int    // of the refusal of the bytes after them, after which the connection ends; 0: nothing follows
	early      string // frames that follow at once, before the client knows that its tunnel is open
	cut        bool   // the client leaves in the middle of a body; the refusal is optional
}

// A list is rows that are added by families.
type list struct{ rows []row }

func (t *list) pass(name string, requests int, sent string) {
	t.rows = append(t.rows, row{name: name, sent: sent, passes: requests})
}

func (t *list) refuse(name string, sent string) {
	t.rows = append(t.rows, row{name: name, sent: sent, status: http.StatusBadRequest})
}

// one adds a row that passes as one request, or is refused.
func (t *list) one(passes bool, name, sent string) {
	if passes {
		t.pass(name, 1, sent)
		return
	}
	t.refuse(name, sent)
}

func get(target string, fields ...string) string { return request("GET "+target, fields...) }

func request(line string, fields ...string) string {
	return line + " HTTP/1.1\r\nHost: a\r\n" + lines(fields) + "\r\n"
}

func lines(fields []string) string {
	if len(fields) == 0 {
		return ""
	}
	return strings.Join(fields, "\r\n") + "\r\n"
}

// next is a second request. A parser that takes the one before it for shorter or longer reads
// another request in its place.
var next = get("/next")

const (
	chunked  = "Transfer-Encoding: chunked"
	noChunks = "0\r\n\r\n"
	hello    = "5\r\nhello\r\n0\r\n\r\n"
)

// rows are all requests of the suite.
func rows() []row {
	t := new(list)
	t.controls()
	t.lengths()
	t.codings()
	t.chunks()
	t.trailers()
	t.ends()
	t.requestLines()
	t.hosts()
	t.connections()
	t.sizes()
	t.pipelines()
	t.frames()
	return t.rows
}

// controls put each control byte, and some others, into each part of a head.
func (t *list) controls() {
	for _, part := range []struct {
		name, head string // %s: the byte
		also       string // bytes that may be there
	}{
		{"the method", "GE%sT / HTTP/1.1\r\nHost: a\r\n\r\n", ""},
		{"the target", "GET /a%sb HTTP/1.1\r\nHost: a\r\n\r\n", "\x80\xff"},
		{"the version", "GET / HTTP/1%s.1\r\nHost: a\r\n\r\n", ""},
		{"the name of a field", "GET / HTTP/1.1\r\nHost: a\r\nX%sY: z\r\n\r\n", ""},
		{"the value of a field", "GET / HTTP/1.1\r\nHost: a\r\nX: y%sz\r\n\r\n", "\t\x80\xff"},
		{"the host", "GET / HTTP/1.1\r\nHost: a%sb\r\n\r\n", ""},
	} {
		for c := range 256 {
			if c < ' ' || c == 0x7f || c == 0x80 || c == 0xff {
				b := string([]byte{byte(c)})
				t.one(strings.Contains(part.also, b), fmt.Sprintf("byte %#02x in %s", c, part.name), fmt.Sprintf(part.head, b))
			}
		}
	}
	for _, c := range `"(),/;<=>?@[\]{}` {
		t.refuse(fmt.Sprintf("%c in the name of a field", c), get("/", fmt.Sprintf("X%cY: z", c)))
	}
	for _, c := range "!#$%&'*+-.^`|~" {
		t.pass(fmt.Sprintf("%c in the name of a field", c), 1, get("/", fmt.Sprintf("X%cY: z", c)))
	}
}

// lengths are Content-Lengths, alone and beside a coding.
func (t *list) lengths() {
	with := func(body string, fields ...string) string { return request("POST /", fields...) + body }
	for _, value := range []string{"5", " 5", "5 ", "\t5", "05", "0000000005"} {
		t.pass(fmt.Sprintf("Content-Length:%q", value), 2, with("hello"+next, "Content-Length:"+value))
	}
	for _, value := range []string{
		"", "+5", "-5", "0x5", "5,5", "5, 5", "5;q=1", "5 5", "5a", "a", "5.0", "5e0", "５", "18446744073709551621", "9223372036854775808", "99999999999999999999999", `"5"`, "chunked",
	} {
		t.refuse(fmt.Sprintf("Content-Length:%q", value), with("hello"+next, "Content-Length:"+value))
	}
	for _, pair := range [][2]string{{"5", "5"}, {"5", "6"}, {"0", "5"}, {"5", "0"}, {"5", ""}} {
		t.refuse("Content-Length: "+pair[0]+" and "+pair[1], with("hello"+next, "Content-Length: "+pair[0], "Content-Length: "+pair[1]))
	}
	for _, length := range []string{"Content-Length: 0", "Content-Length: 5", "content-length: 5", "Content-Length: 50", "Content-Length:"} {
		t.refuse(length+" before chunks", with(noChunks+next, length, chunked))
		t.refuse(length+" behind chunks", with(noChunks+next, chunked, length))
	}
	t.pass("a GET with a length", 2, get("/", "Content-Length: 5")+"hello"+next)
	t.pass("a GET with a length of nothing", 2, get("/", "Content-Length: 0")+next)
	t.pass("a POST without a length", 2, with(next))
	t.rows = append(t.rows, row{name: "a body that is cut off", sent: with("hel", "Content-Length: 5"), status: http.StatusBadRequest, cut: true},
		row{name: "a chunk that is cut off", sent: with("5\r\nhel", chunked), status: http.StatusBadRequest, cut: true},
		row{name: "a body without its last chunk", sent: with("5\r\nhello\r\n", chunked), status: http.StatusBadRequest, cut: true})
}

// codings are Transfer-Encodings, and names that look like it.
func (t *list) codings() {
	with := func(line string) string { return request("POST /", line) + noChunks + next }
	for _, value := range []string{" chunked", "chunked", " Chunked", " CHUNKED", "\tchunked", " chunked \t"} {
		t.pass(fmt.Sprintf("Transfer-Encoding:%q", value), 2, with("Transfer-Encoding:"+value))
	}
	for _, value := range []string{
		"", "xchunked", "chunkedx", `"chunked"`, "'chunked'", "chunked, chunked", "chunked,", ",chunked", "gzip, chunked", "identity", "chunked, identity", "identity, chunked",
		"chunked;q=1", "\x0bchunked", "\x0cchunked", "chunked\x00", "chun ked", "chunked\r\n x", "\r\n chunked", "gzip",
	} {
		t.refuse(fmt.Sprintf("Transfer-Encoding:%q", value), with("Transfer-Encoding:"+value))
	}
	for _, name := range []string{
		"Transfer-Encoding ", " Transfer-Encoding", "\tTransfer-Encoding", "Transfer-Encoding\t", "Transfer Encoding", "Transfer-Encoding\x00", "\x00Transfer-Encoding",
		"Transfer-Encoding\x0b", "Trans\rfer-Encoding", "Transfer-Encod\xc4\xb1ng", `"Transfer-Encoding"`, "", ":Transfer-Encoding", "X: y\nTransfer-Encoding", "X: y\rTransfer-Encoding", "X\r\nTransfer-Encoding",
	} {
		t.refuse(fmt.Sprintf("%q: chunked", name), with(name+": chunked"))
		t.refuse(fmt.Sprintf("%q: chunked beside a length", name), with("Content-Length: 5\r\n"+name+": chunked"))
	}
	t.refuse("chunked twice", with(chunked+"\r\n"+chunked))
	t.refuse("a coding in HTTP/1.0", "POST / HTTP/1.0\r\nHost: a\r\n"+chunked+"\r\n\r\n"+noChunks)
	t.pass("a GET in chunks", 2, get("/", chunked)+hello+next)
}

// chunks are the syntax of chunks.
func (t *list) chunks() {
	send := func(body string) string { return request("POST /", chunked) + body + next }
	for _, body := range []string{
		hello, "05\r\nhello\r\n00\r\n\r\n", "A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "1\r\na\r\n1\r\nb\r\n0\r\n\r\n", "5;a\r\nhello\r\n0;b\r\n\r\n", "5;a=b\r\nhello\r\n0\r\n\r\n",
		"5;a=\"b c\\\"\";d\r\nhello\r\n0\r\n\r\n", "5 \r\nhello\r\n0\t\r\n\r\n", "3\r\n\r\n\r\r\n0\r\n\r\n",
	} {
		t.pass(fmt.Sprintf("chunks %q", body), 2, send(body))
	}
	for _, body := range []string{
		"5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\rhello\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "5\r\nhello!\r\n0\r\n\r\n", "4\r\nhello\r\n0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n",
		"-5\r\nhello\r\n0\r\n\r\n", " 5\r\nhello\r\n0\r\n\r\n", "5;\r\nhello\r\n0\r\n\r\n", "5;a=\r\nhello\r\n0\r\n\r\n", "5;a=\"\r\nhello\r\n0\r\n\r\n", "5;a\nhello\r\n0\r\n\r\n", "5;a\rb\r\nhello\r\n0\r\n\r\n", "5;a\x00\r\nhello\r\n0\r\n\r\n",
		"5 ;a\r\nhello\r\n0\r\n\r\n", "5; a\r\nhello\r\n0\r\n\r\n", "5 a\r\nhello\r\n0\r\n\r\n", "\r\nhello\r\n0\r\n\r\n", "g\r\nhello\r\n0\r\n\r\n", "5g\r\nhello\r\n0\r\n\r\n", "10000000000000005\r\nhello\r\n0\r\n\r\n",
		"ffffffffffffffff\r\nhello", "8000000000000000\r\nhello", "000000000000000000005\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n-0\r\n\r\n", "2;\nxx\r\n4c\r\n0\r\n\r\n", "5\r\nhello\r\n0\n\n", "5\r\nhello\r\n0\r\n\n", "5\r\nhello\r\n\r\n",
		"5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n5,5\r\nhello\r\n0\r\n\r\n",
	} {
		t.refuse(fmt.Sprintf("chunks %q", body), send(body))
	}
}

// trailers are the fields behind the last chunk.
func (t *list) trailers() {
	send := func(lines string) string {
		return request("POST /", chunked) + "5\r\nhello\r\n0\r\n" + lines + "\r\n" + next
	}
	for _, trailer := range []string{"X: y\r\n", "X:\r\nX: y\r\n", "X-Sum: a:b\r\n"} {
		t.pass(fmt.Sprintf("trailer %q", trailer), 2, send(trailer))
	}
	for _, trailer := range []string{
		"X : y\r\n", " X: y\r\n", "X: y\r\n z\r\n", "X: \x00\r\n", "X: y\n", "X\r\n", ": y\r\n", "Content-Length: 9\r\n", "Transfer-Encoding: chunked\r\n", "Host: b\r\n", "Trailer: X\r\n", "content-length: 0\r\n", "X: y\r\r\n",
	} {
		t.refuse(fmt.Sprintf("trailer %q", trailer), send(trailer))
	}
}

// ends are the ends of lines, and malformed lines.
func (t *list) ends() {
	plain := get("/", "X: y")
	for _, end := range []string{"\n", "\r", "\n\r", "\r\r\n", "\r\n\r", " \n", "\x0b\n"} {
		t.refuse(fmt.Sprintf("all lines end in %q", end), strings.ReplaceAll(plain, "\r\n", end)+"\r\n\r\n")
		t.refuse(fmt.Sprintf("the request line ends in %q", end), strings.Replace(plain, "\r\n", end, 1))
		t.refuse(fmt.Sprintf("a field ends in %q", end), strings.Replace(plain, "y\r\n", "y"+end, 1)+"\r\n\r\n")
	}
	t.refuse("the head ends in a bare LF", strings.TrimSuffix(plain, "\r\n")+"\n")
	for _, first := range []string{"\r\n", "\r\n\r\n", "\n", "\r", " ", "\t", "\x00", "\xef\xbb\xbf"} {
		t.refuse(fmt.Sprintf("%q in front of a request", first), first+plain)
	}
	for _, line := range []string{" folded", "\tfolded", " X: y", "X : y", "X\t: y", "X", ": y", "X y", "X;y", " "} {
		t.refuse(fmt.Sprintf("the field %q", line), get("/", "Y: z", line, "Z: z"))
	}
	t.refuse("a folded field first", "GET / HTTP/1.1\r\n X: y\r\nHost: a\r\n\r\n")
	t.refuse("a field in front of all", "X: y\r\n"+plain)
	for _, field := range []string{"X:y", "X:", "X: \t ", "X:\ty\t", "X: y z", "X: y:z", `X: "`, "x-y: z", "X: y\r\nX: z", "X-Weir-Tenant: a", "X_Y: z", "Content_Length: 5", "Transfer_Encoding: chunked"} {
		t.pass(fmt.Sprintf("the field %q", field), 2, get("/", field)+next)
	}
}

// requestLines are methods, targets and versions.
func (t *list) requestLines() {
	for _, line := range []string{
		"GET / HTTP/0.9", "GET / HTTP/1.2", "GET / HTTP/1.10", "GET / HTTP/1", "GET / HTTP/2.0", "GET / http/1.1", "GET / HTTP/1.1 ", "GET /  HTTP/1.1", "GET  / HTTP/1.1", "GET\t/ HTTP/1.1", "GET /\tHTTP/1.1", " GET / HTTP/1.1",
		"GET / HTTP/ 1.1", "GET / HTTP/+1.1", "GET / HTTP/1,1", "GET / HTP/1.1", "GET /", "GET / ", "GET", "/ HTTP/1.1", "GET /a b HTTP/1.1", "G(T / HTTP/1.1", "GET: / HTTP/1.1", "PRI * HTTP/1.1", "PRI * HTTP/2.0",
	} {
		t.refuse(fmt.Sprintf("%q", line), line+"\r\nHost: a\r\n\r\n"+next)
	}
	for _, line := range []string{"GET / HTTP/1.0", "get / HTTP/1.1", "M-SEARCH / HTTP/1.1", "X!#$%&'*+-.^_`|~ / HTTP/1.1", "TRACE / HTTP/1.1", "HEAD / HTTP/1.1", "DELETE / HTTP/1.1"} {
		t.pass(fmt.Sprintf("%q", line), 1, line+"\r\nHost: a\r\n\r\n")
	}
	for _, target := range []string{
		"*", "a", "a/b", "@a/b", "/#", "/a#b", "/a\\b", `/"`, "/<x>", "http://", "http:///x", "ftp://a/x", "http:/a", "http://u@a/", "http://u:p@a/", "http://a:b/", "http://[::1/", "http://a\\b/", "javascript:x", "a:80", "?x", "\\x", "file:///x",
	} {
		t.refuse("the target "+target, get(target)+next)
	}
	for _, target := range []string{
		"/", "/a/b;c?d=e&f", "/%2e%2e/x", "/../x", "/a%2Fb", "/%00", "/a%0d%0aX:y", "/?x?y", "/?a=\"<>\\", "/?%zz", "/{x}|[y]^`", "/caf\xc3\xa9?\xe9", "//a/b", "/" + strings.Repeat("a", 8000),
		"http://a", "http://b/x", "HTTP://b/x?y", "https://b/x", "http://b?x", "http://b:80/", "http://[::1]/x",
	} {
		t.pass("the target "+target[:min(len(target), 40)], 2, get(target)+next)
	}
	t.refuse("a % without its digits", get("/%zz"))
	t.pass("OPTIONS *", 2, request("OPTIONS *")+next)
	for _, target := range []string{"a:80", "a", "/", "http://a/"} {
		t.rows = append(t.rows, row{name: "CONNECT " + target, sent: request("CONNECT "+target) + next, status: http.StatusNotImplemented})
	}
}

// hosts are values of Host.
func (t *list) hosts() {
	for _, host := range []string{"a", "a:80", "a:", "[::1]", "[::1]:80", "a-b.c", "A", "%61", "127.0.0.1", ""} {
		t.pass("the host "+host, 2, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"+next)
	}
	for _, host := range []string{"a:b", "a:80:80", "a b", "a/b", "a?b", "a#b", "u@a", "a\\b", "[::1", "::1", "[a]", "[::1]x", "%zz", "é", "<a>", "a\r\nHost: b", "a\r\nhost: a", "a\r\nHost:"} {
		t.refuse(fmt.Sprintf("the host %q", host), "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"+next)
	}
	t.refuse("two hosts and an absolute target", "GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"+next)
	t.refuse("no host", "GET / HTTP/1.1\r\n\r\n"+next)
	t.refuse("an absolute target and no host", "GET http://a/ HTTP/1.1\r\n\r\n"+next)
	t.pass("no host in HTTP/1.0", 1, "GET / HTTP/1.0\r\n\r\n")
}

// connections are fields that are of one connection.
func (t *list) connections() {
	for _, name := range []string{"Host", "Content-Length", "X-Forwarded-For", "Authorization", "Cookie", "X-User", "close, x-user", "keep-alive,X-User", ",,X-User"} {
		t.refuse("Connection: "+name, get("/", "Connection: "+name, "X-Forwarded-For: 1.1.1.1", "Authorization: x", "Cookie: x", "X-User: x", "Content-Length: 0")+next)
	}
	for _, option := range []string{"keep-alive", "Keep-Alive", "X-Not-There", "TE", ",,", "Transfer-Encoding", "upgrade", "Proxy-Connection"} {
		t.pass("Connection: "+option, 2, get("/", "Connection: "+option, "Keep-Alive: timeout=5", "TE: trailers", "Proxy-Connection: keep-alive")+next)
	}
	t.pass("Connection: close", 1, get("/", "Connection: close")+next)
	t.pass("hops before", 2, get("/", "X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 2.2.2.2", "Forwarded: for=x", "Via: 1.1 x")+next)
	for _, expect := range []string{"y 100-continue", "200-ok", "100-continue, x", "100-continue\r\nExpect: x", ""} {
		t.rows = append(t.rows, row{name: fmt.Sprintf("Expect: %q", expect), sent: request("POST /", "Content-Length: 5", "Expect: "+expect) + "hello" + next, status: http.StatusExpectationFailed})
	}
	t.pass("Expect: 100-continue, and the body at once", 2, request("POST /", "Content-Length: 5", "Expect: 100-continue")+"hello"+next)
	for _, protocol := range []string{"h2c", "websocket, h2c", "websocket\r\nUpgrade: h2c", "HTTP/2.0", "TLS/1.2", ""} {
		t.pass(fmt.Sprintf("Upgrade: %q", protocol), 2, get(framingtest.Tunnels, "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__", "Upgrade: "+protocol)+next)
	}
}

// sizes are large heads.
func (t *list) sizes() {
	const most = 36 << 10 // by docs/proxy.md
	t.pass("a field of 30,000 bytes", 2, get("/", "X: "+strings.Repeat("y", 30_000))+next)
	t.pass("1,000 fields", 2, get("/", strings.Split(strings.Repeat("X: y\n", 1000), "\n")[:1000]...)+next)
	for name, sent := range map[string]string{
		"a field above 36 KiB":    get("/", "X: "+strings.Repeat("y", most)),
		"a field of 70,000 bytes": get("/", "X: "+strings.Repeat("y", 70_000)),
		"10,000 fields":           get("/", strings.Split(strings.Repeat("X: y\n", 10_000), "\n")[:10_000]...),
		"a target above 36 KiB":   get("/" + strings.Repeat("a", most)),
		"a method above 36 KiB":   request(strings.Repeat("M", most) + " /"),
		"a name above 36 KiB":     get("/", strings.Repeat("n", most)+": y"),
	} {
		t.rows = append(t.rows, row{name: name, sent: sent + next, status: http.StatusRequestHeaderFieldsTooLarge})
	}
}

// pipelines are requests that do not wait for answers.
func (t *list) pipelines() {
	post, chunks := request("POST /p", "Content-Length: 5")+"hello", request("PUT /p", chunked)+hello
	t.pass("50 GETs", 50, strings.Repeat(next, 50))
	t.pass("30 with bodies", 30, strings.Repeat(post+chunks+next, 10))
	t.pass("an empty line behind a POST", 2, post+"\r\n"+next)
	for _, between := range []string{"\n", "\r\n\r\n", " ", "\x00", "GET /\r\n", "X: y\r\n"} {
		t.rows = append(t.rows, row{name: fmt.Sprintf("%q between requests", between), sent: post + between + next, passes: 1, status: http.StatusBadRequest})
	}
	t.rows = append(t.rows, row{name: "an empty line behind a GET", sent: next + "\r\n" + next, passes: 1, status: http.StatusBadRequest},
		row{name: "a malformed one at the end", sent: next + chunks + "GET / HTTP/1.1\nHost: a\n\n", passes: 2, status: http.StatusBadRequest},
		row{name: "two lengths at the end", sent: post + request("POST /", "Content-Length: 1", "Content-Length: 2") + "ab", passes: 1, status: http.StatusBadRequest})
	t.pass("a body longer than its length, which makes another method", 2, post+"hello"+next)
}

// frames follow a request for a WebSocket at once. The sidecar cannot know yet whether the app agrees.
func (t *list) frames() {
	for name, early := range map[string]string{
		"a frame":                          "\x81\x85\x00\x00\x00\x00Early",
		"an end of a line":                 "\n",
		"ends of lines":                    "\r\n\r\n\n\n",
		"what would be a request":          next,
		"what would be a malformed one":    strings.ReplaceAll(next, "\r\n", "\n"),
		"every byte":                       "\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x7f\x80\xff",
		"frames larger than all buffers":   strings.Repeat("\x82\x7e\x10\x00\n\r", 300_000),
		"a line longer than a head may be": strings.Repeat("a", 100_000),
	} {
		t.rows = append(t.rows, row{name: "early: " + name, sent: get(framingtest.Tunnels, "Connection: Upgrade", "Upgrade: websocket"), early: early, passes: 1})
		t.rows = append(t.rows, row{name: "early, pipelined: " + name, sent: next + get(framingtest.Tunnels, "Connection: keep-alive, Upgrade", "Upgrade: WebSocket"), early: early, passes: 2})
	}
	declined := get("/declined", "Connection: Upgrade", "Upgrade: websocket")
	t.pass("a request behind a declined WebSocket", 2, declined+next)
	t.pass("a WebSocket declined twice", 3, declined+declined+next)
	t.rows = append(t.rows, row{name: "a frame behind a declined WebSocket", sent: declined + "\x81\x85\x00\x00\x00\x00Early\r\n", passes: 1, status: http.StatusBadRequest},
		row{name: "a malformed request behind a declined WebSocket", sent: declined + "GET / HTTP/1.1\nHost: a\n\n", passes: 1, status: http.StatusBadRequest})
}
