package http1

import (
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// request makes of a head a request as net/http has it. It returns false where the target is not
// one. The buffer of the head may be used again then.
func (t *transfer) request() bool {
	c, h := t.conn, &t.conn.scratch.head
	p := c.in.bytes()[:h.parsed]
	for _, f := range h.fields {
		canonicalize(f.name.of(p))
	}
	text := string(p)
	c.in.skip(h.parsed)
	t.text = text
	header, values := make(http.Header, len(h.fields)), make([]string, len(h.fields))
	r := http.Request{
		Method: methodOf(h.method.in(text)), URL: &t.url, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		RemoteAddr: c.remote, RequestURI: h.target.in(text), Body: http.NoBody,
	}
	if h.HTTP10 {
		r.Proto, r.ProtoMinor = "HTTP/1.0", 0
	}
	for i := range h.fields {
		f := &h.fields[i]
		name, value := f.name.in(text), f.value.in(text)
		switch name {
		case "Host":
			r.Host = value
		case "Transfer-Encoding":
		case "Trailer":
			if h.Chunked {
				r.Trailer = announced(r.Trailer, value)
			}
		default:
			if before, ok := header[name]; ok {
				header[name] = append(before, value)
				continue
			}
			f.first = true
			values[i] = value
			header[name] = values[i : i+1 : i+1]
		}
	}
	t.body.of(h)
	switch {
	case h.Chunked:
		r.Body, r.ContentLength, r.TransferEncoding = io.ReadCloser(exchange.Body{}), -1, chunkedCoding
	case h.Length > 0:
		r.Body, r.ContentLength = exchange.Body{}, int64(h.Length)
	}
	ok := t.address(&r)
	t.r = r.WithContext(t)
	return ok
}

var chunkedCoding = []string{"chunked"}

// methodOf returns a frequent method without the head that it is a part of.
func methodOf(method string) string {
	switch method {
	case http.MethodGet:
		return http.MethodGet
	case http.MethodPost:
		return http.MethodPost
	}
	return method
}

// announced adds the names of trailers.
func announced(trailer http.Header, names string) http.Header {
	for name := range strings.SplitSeq(names, ",") {
		switch name = http.CanonicalHeaderKey(strings.Trim(name, " \t")); name {
		case "", "Transfer-Encoding", "Trailer", "Content-Length":
		default:
			if trailer == nil {
				trailer = http.Header{}
			}
			trailer[name] = nil
		}
	}
	return trailer
}

// address reads the target.
func (t *transfer) address(r *http.Request) bool {
	target := r.RequestURI
	if path, query, ok := plain(target); ok {
		t.url.Path, t.url.RawQuery = path, query
		t.target = target
		return true
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return r.Method == http.MethodConnect // which is refused
	}
	t.url = *u
	if u.Host != "" && target[0] != '/' {
		r.Host = u.Host
		_, rest, _ := strings.Cut(target, "://")
		target = rest[len(rest)-len(strings.TrimLeftFunc(rest, func(c rune) bool { return c != '/' && c != '?' })):]
		if target == "" || target[0] == '?' {
			target = "/" + target
		}
	}
	t.target = target
	return true
}

// plain splits a target that is a path and a query. It reports false where something in it is escaped,
// or may be read in more than one way.
func plain(target string) (path, query string, ok bool) {
	if target[0] != '/' || len(target) > 1 && target[1] == '/' {
		return "", "", false
	}
	path = target
	for i := range len(target) {
		if c := target[i]; c == '?' {
			path, query = target[:i], target[i+1:]
			break
		} else if !pathByte[c] {
			return "", "", false
		}
	}
	for i := range len(query) {
		if c := query[i]; c <= ' ' || c >= 0x7f || c == '#' {
			return "", "", false
		}
	}
	return path, query, query != "" || len(path) == len(target) // else the URL keeps that there is a "?"
}

// pathByte are the bytes that stand in a path as they are.
var pathByte = func() (set [256]bool) {
	for _, c := range []byte("/-._~$&+,:;=@0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		set[c] = true
	}
	return set
}()
