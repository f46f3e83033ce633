package framingtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// wellFormed are requests to begin with.
var wellFormed = []string{
	"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a/b%20c;d?e=f&g HTTP/1.1\r\nHost: shop.example:8080\r\nAccept: */*\r\nX-Empty:\r\n\r\n",
	"HEAD /x HTTP/1.1\r\nhost: [::1]:80\r\nConnection: keep-alive\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET http://other.example/x?y HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.0\r\nHost: a\r\n\r\n",
	"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
	"POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"PUT /p HTTP/1.1\r\nHost: a\r\nTrailer: X-Sum\r\nTransfer-Encoding: Chunked\r\nTE: trailers\r\n\r\n3;a=b;c=\"d \\\" e\"\r\nabc\r\nA;x\r\n0123456789\r\n00\r\nX-Sum: 7\r\n\r\n",
	"POST /first HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /second HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /first HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nGET /second HTTP/1.1\r\nHost: a\r\n\r\nDELETE /third HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
	"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /second HTTP/1.1\r\nHost: a\r\n\r\n",
}

// smuggled follows a request whose end two parsers may see at different places.
const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"

// Known returns what request smuggling and its kin are known to be tried with, and what
// has to pass although it looks alike.
func Known() []string {
	var all []string
	add := func(requests ...string) { all = append(all, requests...) }
	with := func(lines ...string) string {
		return "POST /p HTTP/1.1\r\nHost: a\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
	}
	const cl, te, chunks = "Content-Length: 5", "Transfer-Encoding: chunked", "0\r\n\r\n"
	// Which of two lengths counts.
	for _, body := range []string{chunks + smuggled, "5\r\nhello\r\n0\r\n\r\n" + smuggled} {
		add(with(cl, te)+body, with(te, cl)+body, with(te, te)+body, with("content-length: 5", "TRANSFER-ENCODING: chunked")+body)
	}
	for _, length := range []string{"+5", "-5", "5 ", " 5", "0x5", "5,5", "5, 5", "5 5", "", "5a", "05", "5.0", "１", "18446744073709551621", "9223372036854775808", "999999999999999999999"} {
		add("POST /p HTTP/1.1\r\nHost: a\r\nContent-Length:" + length + "\r\n\r\nhello" + smuggled)
	}
	add(with(cl, cl)+"hello"+smuggled, with(cl, "Content-Length: 6")+"hello"+smuggled, with("Content-Length: 0", cl)+"hello"+smuggled)
	for _, coding := range []string{
		"Chunked", "CHUNKED", "xchunked", "chunkedx", "\"chunked\"", "chunked, chunked", "chunked,", ",chunked", "gzip, chunked", "identity",
		"chunked, identity", "chunked;q=1", "\x0bchunked", "chunked\x00", "chun ked", "", "cow", "chunked\r\n x", "\r\n chunked", "\tchunked", "chunked \t",
	} {
		add("POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:"+coding+"\r\n\r\n"+chunks+smuggled,
			"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding:"+coding+"\r\n\r\n"+chunks+smuggled)
	}
	for _, name := range []string{
		"Transfer-Encoding ", " Transfer-Encoding", "\tTransfer-Encoding", "Transfer-Encoding\t", "Transfer_Encoding", "Transfer Encoding", "Transfer-Encoding\x00",
		"\x00Transfer-Encoding", "Transfer-Encoding\x0b", "Trans\rfer-Encoding", "Transfer-Encod\xc4\xb1ng", "\"Transfer-Encoding\"", "", ":Transfer-Encoding", "X\r\nTransfer-Encoding", "X: y\nTransfer-Encoding", "X: y\rTransfer-Encoding",
	} {
		add(with(cl, name+": chunked")+chunks+smuggled, with(name+": chunked")+chunks+smuggled)
	}
	add("POST /p HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"+chunks+smuggled,
		"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"+chunks+smuggled, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"+smuggled)
	// The ends of lines.
	add(strings.ReplaceAll(smuggled, "\r\n", "\n"), strings.ReplaceAll(smuggled, "\r\n", "\r"), strings.ReplaceAll(smuggled, "\r\n", "\n\r"),
		strings.ReplaceAll(smuggled, "\r\n", "\r\r\n"), "\r\n"+smuggled, "\n"+smuggled, " "+smuggled, "\x00"+smuggled, with("X: a", " folded")+smuggled, with("X: a", "\tfolded"), with(" X: a"),
		"GET / HTTP/1.1\r\n X: a\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET /\r\n", "GET /\r\n\r\n", "GET / \r\n\r\n", "GET\r\n\r\n", "\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\n", "GET / HTTP/1.1\r\nHost: a\n\r\n")
	// Chunks.
	for _, body := range []string{
		"5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "5\r\nhello!\r\n0\r\n\r\n", "4\r\nhello\r\n0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n", "-5\r\nhello\r\n0\r\n\r\n",
		" 5\r\nhello\r\n0\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n", "5\t\r\nhello\r\n0\r\n\r\n", "5;\r\nhello\r\n0\r\n\r\n", "5;a\r\nhello\r\n0\r\n\r\n", "5;a=\r\nhello\r\n0\r\n\r\n", "5;a=\"\r\nhello\r\n0\r\n\r\n", "5;a\nhello\r\n0\r\n\r\n", "5 \t \r\nhello\r\n0 \r\n\r\n", "5;a \r\nhello\r\n0\r\n\r\n", "5;a=\"b\" \r\nhello\r\n0\r\n\r\n", "5 \x0b\r\nhello\r\n0\r\n\r\n", "5;a\rb\r\nhello\r\n0\r\n\r\n",
		"5;a\x00\r\nhello\r\n0\r\n\r\n", "5 ;a\r\nhello\r\n0\r\n\r\n", "5; a\r\nhello\r\n0\r\n\r\n", "5;a =b\r\nhello\r\n0\r\n\r\n", "5 a\r\nhello\r\n0\r\n\r\n", "\r\nhello\r\n0\r\n\r\n", "g\r\nhello\r\n0\r\n\r\n", "5g\r\nhello\r\n0\r\n\r\n", "10000000000000005\r\nhello\r\n0\r\n\r\n", "ffffffffffffffff\r\nhello", "8000000000000000\r\n", "000000000000000000005\r\nhello\r\n0\r\n\r\n",
		"00005\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\n", "5\r\nhello\r\n0\n\n", "5\r\nhello\r\n0\r\n\n", "5\r\nhello\r\n-0\r\n\r\n", "5\r\nhello\r\n0;a=b\r\n\r\n", "5\r\nhello\r\n0\r\nX: y\r\n\r\n", "5\r\nhello\r\n0\r\nX: y\n\r\n", "5\r\nhello\r\n0\r\nX : y\r\n\r\n", "5\r\nhello\r\n0\r\n X: y\r\n\r\n",
		"5\r\nhello\r\n0\r\nX: y\r\n z\r\n\r\n", "5\r\nhello\r\n0\r\nX: \x00\r\n\r\n", "5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n", "5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n0\r\nHost: b\r\n\r\n", "5\r\nhello\r\n0\r\nno field\r\n\r\n",
		"5;" + strings.Repeat("a", 9000) + "\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\nX: " + strings.Repeat("y", 9000) + "\r\n\r\n", "5\r\nhel",
	} {
		add(with(te)+body+smuggled, with(te, "Trailer: X")+body+smuggled)
	}
	// Empty lines in front of a request line.
	for _, body := range []string{with(cl) + "hello", with(te) + chunks, with(), strings.Replace(with(cl), "POST", "PUT", 1) + "hello", strings.Replace(with(cl), "POST", "post", 1) + "hello"} {
		for _, empty := range []string{"\r\n", "\r\n\r\n", "\n", "\r", "\r\n\n", "\r\n\r", "\r\n ", "\r\n\r\n\r\n"} {
			add(body+empty+smuggled, body+empty, body+empty+smuggled+empty+smuggled)
		}
	}
	// Targets, methods and versions.
	for _, target := range []string{
		"", "*", "/*", "a", "a/b", "//a/b", "/#", "/a#b", "/a\\b", "/a?b\\c", "/?\"", "/?<x>", "/caf\xc3\xa9?\xe9", "http://a/\xff?\x80", "http://\xc3\xa9/", "/\x7f", "/%", "/%2", "/%zz", "/%00", "/a?%zz", "/a%2Fb", "/%2e%2e/x", "/../x", "/./x", "/\xc3\xa9", "/a b", "/a\tb", "/a\x00b", "/a\x7fb", "/\"", "/<x>", "/{x}|[y]^`", "/?{x}|[y]^`",
		"http://", "http:///x", "http://a", "http://a?x", "http://other/x", "HTTP://a/", "https://a/x", "ftp://a/x", "http:/a", "http://u@a/", "http://u:p@a/", "http://a:b/", "http://[::1]/", "http://[::1/", "http://a\\b/", "javascript:x", "a:80", "?x", "/?x?y", "/;a=b", "/" + strings.Repeat("a", 8000), "/" + strings.Repeat("a", 40000),
	} {
		for _, method := range []string{"GET", "OPTIONS", "CONNECT"} {
			add(method + " " + target + " HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled)
		}
	}
	for _, method := range []string{"", "G ET", "GET\t", "G\x00T", "GÉT", "G(T", "get", "M-SEARCH", "PRI", "X!#$%&'*+-.^_`|~", strings.Repeat("M", 5000), strings.Repeat("M", 50000), "GET:", "\"GET\"", "GET,"} {
		add(method + " / HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled)
	}
	for _, version := range []string{"", "HTTP/0.9", "HTTP/1.0", "HTTP/1.2", "HTTP/1.10", "HTTP/1", "HTTP/2.0", "HTTP/3", "http/1.1", "HTTP/1.1 ", " HTTP/1.1", "HTTP/ 1.1", "HTTP/1,1", "HTTP/+1.1", "HTP/1.1", "HTTP/1.1x", "HTTP/١.1", "ICY/1.1"} {
		add("GET / "+version+"\r\nHost: a\r\n\r\n"+smuggled, "PRI * "+version+"\r\n\r\n"+smuggled)
	}
	add("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"+smuggled, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r"+smuggled, "PRI * HTTP/2.0\r\nHost: a\r\n\r\n"+smuggled)
	// Whom a request is for.
	for _, host := range []string{"", "a:", "a:80", "a:b", "a:80:80", "a b", "a/b", "a?b", "a#b", "u@a", "a\\b", "[::1]", "[::1", "::1", "[a]", "[::1]x", "[fe80::1%25eth0]", "%zz", "%61", "a,b", "a\x00", "é", "<a>", "a\r\nHost: b", "a\r\nhost: a", "a\n", "\ta"} {
		add("GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"+smuggled, "GET http://x/ HTTP/1.1\r\nHost: "+host+"\r\n\r\n"+smuggled, "GET / HTTP/1.0\r\nHost: "+host+"\r\n\r\n"+smuggled)
	}
	// Fields, and those that claim to be of the connection.
	for c := range 256 {
		add(with(fmt.Sprintf("X: a%cb", rune(0))+string([]byte{byte(c)}))+smuggled, "GET / HTTP/1.1\r\nHost: a\r\nX: a"+string([]byte{byte(c)})+"b\r\n\r\n"+smuggled,
			"GET / HTTP/1.1\r\nHost: a\r\nX"+string([]byte{byte(c)})+"Y: z\r\n\r\n"+smuggled, "GE"+string([]byte{byte(c)})+"T / HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a"+string([]byte{byte(c)})+"b HTTP/1.1\r\nHost: a\r\n\r\n"+smuggled)
	}
	for _, name := range []string{"Host", "Content-Length", "X-Forwarded-For", "Forwarded", "Authorization", "Cookie", "X-User", "Cache-Control", "close", "X-Not-There", "Connection", "TE", "Expect", "Transfer-Encoding"} {
		for _, separator := range []string{"", "close, ", "keep-alive,", ",,", "\t"} {
			add("GET / HTTP/1.1\r\nHost: a\r\nConnection: " + separator + name + "\r\nX-Forwarded-For: 1.1.1.1\r\nForwarded: for=x\r\nAuthorization: x\r\nCookie: x\r\nX-User: x\r\nCache-Control: x\r\nContent-Length: 0\r\n\r\n" + smuggled)
		}
	}
	for _, te := range []string{"trailers", "trailers, deflate", "gzip;q=0.5", "chunked", "trailers\r\nTE: x"} {
		add("GET / HTTP/1.1\r\nHost: a\r\nConnection: TE\r\nTE: "+te+"\r\n\r\n"+smuggled, "GET / HTTP/1.1\r\nHost: a\r\nTE: "+te+"\r\n\r\n"+smuggled)
	}
	for _, protocol := range []string{"h2c", "websocket, h2c", "HTTP/2.0", "", "websocket\r\nUpgrade: h2c", "TLS/1.2"} {
		add("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nUpgrade: " + protocol + "\r\n\r\n" + smuggled)
	}
	add("GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("y", 60000)+"\r\n\r\n"+smuggled, "GET / HTTP/1.1\r\nHost: a\r\n"+strings.Repeat("X: y\r\n", 10000)+"\r\n"+smuggled,
		"GET / HTTP/1.1\r\nHost: a\r\n"+strings.Repeat("x", 70000)+": y\r\n\r\n"+smuggled, with(cl, "Expect: 100-continue")+"hello"+smuggled, with(cl, "Expect: 200-ok")+"hello"+smuggled, with(cl)+"hel", strings.Repeat("\r\n", 5000)+smuggled)
	return append(all, wellFormed...)
}

// Mutant returns a request that differs from a well-formed one at one to three places.
func Mutant(random *rand.Rand) string {
	request := wellFormed[random.IntN(len(wellFormed))]
	for range 1 + random.IntN(3) {
		request = mutate(random, request)
	}
	return request
}

func mutate(random *rand.Rand, request string) string {
	at := random.IntN(len(request))
	switch random.IntN(7) {
	case 0: // another byte
		return request[:at] + string([]byte{byte(random.IntN(256))}) + request[at+1:]
	case 1: // one more
		inserts := []string{"\r", "\n", "\r\n", " ", "\t", "\x00", ":", ",", ";", "0", "%", "\r\n ", "\x80", "chunked", smuggled}
		return request[:at] + inserts[random.IntN(len(inserts))] + request[at:]
	case 2: // one less
		return request[:at] + request[at+1:] + "\r\n"
	case 3: // a line twice
		lines := strings.SplitAfter(request, "\r\n")
		i := random.IntN(len(lines))
		return strings.Join(lines[:i+1], "") + strings.Join(lines[i:], "")
	case 4: // a field that frames
		inserts := []string{"Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "Host: b\r\n", "Connection: Host\r\n", "Content-Length: 0\r\n"}
		first := strings.Index(request, "\r\n") + len("\r\n")
		return request[:first] + inserts[random.IntN(len(inserts))] + request[first:]
	case 5: // a line less
		lines := strings.SplitAfter(request, "\r\n")
		i := random.IntN(len(lines))
		return strings.Join(lines[:i], "") + strings.Join(lines[i+1:], "") + " "
	default: // a wrong end of a line
		ends := []string{"\n", "\r", "\r\r\n", "\n\r", " \r\n", "\x0b\r\n"}
		return strings.Replace(request, "\r\n", ends[random.IntN(len(ends))], 1+random.IntN(2))
	}
}
