package frames

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// newRequest returns a request as net/http has it. It is nil where it is malformed so that its
// stream is reset. asks says that the client waits to be asked for the body.
func newRequest(ctx context.Context, f *http2.MetaHeadersFrame, remote string) (r *http.Request, asks bool) {
	method, scheme, authority, path := f.PseudoValue("method"), f.PseudoValue("scheme"), f.PseudoValue("authority"), f.PseudoValue("path")
	connect := method == http.MethodConnect
	switch {
	case f.PseudoValue("protocol") != "":
		return nil, false
	case connect && (path != "" || scheme != "" || authority == ""):
		return nil, false
	case !connect && (!httpguts.ValidHeaderFieldName(method) || path == "" || scheme != "http" && scheme != "https"):
		return nil, false
	}
	header := make(http.Header, len(f.Fields))
	for _, one := range f.RegularFields() {
		name := http.CanonicalHeaderKey(one.Name)
		header[name] = append(header[name], one.Value)
	}
	if asks = httpguts.HeaderValuesContainsToken(header["Expect"], "100-continue"); asks {
		delete(header, "Expect")
	}
	if cookies := header["Cookie"]; len(cookies) > 1 {
		header["Cookie"] = []string{strings.Join(cookies, "; ")}
	}
	authority, ok := hostOf(authority, header["Host"])
	if !ok || !ofHTTP2(header) {
		return nil, false
	}
	delete(header, "Host")
	target, at := path, &url.URL{Host: authority}
	if connect {
		target = authority
	} else {
		var err error
		if at, err = url.ParseRequestURI(path); err != nil || path[0] != '/' && path != "*" {
			return nil, false
		}
	}
	r = &http.Request{
		Method: method, URL: at, Proto: "HTTP/2.0", ProtoMajor: 2, Header: header, Trailer: announced(header),
		Host: authority, RemoteAddr: remote, RequestURI: target, Body: http.NoBody,
	}
	if !f.StreamEnded() {
		r.Body, r.ContentLength = io.ReadCloser(exchange.Body{}), -1
		if length := header["Content-Length"]; len(length) > 0 {
			r.ContentLength = max(0, lengthOf(length[0]))
		}
	}
	return r.WithContext(ctx), asks
}

// hostOf returns the host that a request is for, and false where it is not one or not clear.
func hostOf(authority string, hosts []string) (string, bool) {
	if len(hosts) > 1 || len(hosts) == 1 && authority != "" && hosts[0] != authority {
		return "", false
	}
	if authority == "" && len(hosts) == 1 {
		authority = hosts[0]
	}
	return authority, strings.IndexByte(authority, '@') < 0
}

// announced takes the names of trailers from a header.
func announced(h http.Header) (trailer http.Header) {
	for _, value := range h["Trailer"] {
		for name := range strings.SplitSeq(value, ",") {
			switch name = http.CanonicalHeaderKey(strings.TrimSpace(name)); name {
			case "", "Transfer-Encoding", "Trailer", "Content-Length":
			default:
				if trailer == nil {
					trailer = http.Header{}
				}
				trailer[name] = nil
			}
		}
	}
	delete(h, "Trailer")
	return trailer
}

// ofHTTP2 reports whether a header has only fields that HTTP/2 has (RFC 9113, section 8.2.2).
func ofHTTP2(h http.Header) bool {
	for _, name := range [...]string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade"} {
		if _, ok := h[name]; ok {
			return false
		}
	}
	te := h["Te"]
	return len(te) == 0 || len(te) == 1 && (te[0] == "trailers" || te[0] == "")
}

// forApp returns the fields of a request for the app. ends says that it has no body.
func forApp(r *http.Request, ends bool) []hpack.HeaderField {
	fields := make([]hpack.HeaderField, 0, 8+len(r.Header))
	fields = append(fields, field(":method", r.Method), field(":scheme", "http"), field(":path", r.RequestURI))
	if r.Host != "" {
		fields = append(fields, field(":authority", r.Host))
	}
	length := r.Header["Content-Length"]
	delete(r.Header, "Content-Length")
	fields = appendFields(fields, r.Header)
	switch {
	case len(length) == 0:
	case ends && lengthOf(length[0]) == 0, !ends && lengthOf(length[0]) >= 0:
		fields = append(fields, field("content-length", strconv.FormatInt(lengthOf(length[0]), 10)))
	}
	if len(r.Trailer) > 0 {
		var names []string
		for _, f := range appendFields(nil, named(r.Trailer)) {
			names = append(names, f.Name)
		}
		fields = append(fields, field("trailer", strings.Join(names, ",")))
	}
	return fields
}

// named returns a header with those names and a value for each.
func named(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for name := range h {
		out[name] = []string{""}
	}
	return out
}
