package proxy

import (
	"net/http"
	"strings"

	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
)

// malformed returns the answer to a request that no parser behind us is to guess about,
// nil for all others. How a message is framed was checked before; see package framing.
func malformed(r *http.Request, underscores Underscores) *problem.Problem {
	detail := ""
	switch {
	case r.Method == http.MethodConnect:
		p := problem.New(http.StatusNotImplemented, "there is no tunnel through the rate limiter")
		return &p
	case !expectsContinue(r.Header):
		p := problem.New(http.StatusExpectationFailed, "the only expectation that is known is 100-continue")
		return &p
	case r.Method == "PRI":
		detail = "the method PRI is a part of HTTP/2's preface"
	case !isTarget(r):
		detail = "the target of the request is not a path, an http URL or *"
	case !framing.IsAuthority(r.Host):
		detail = "the host of the request is not a name or an address"
	case !namesOwnFields(r.Header):
		detail = "Connection names a field that is not of the connection"
	case underscores == RefuseUnderscores && !isGRPC(r) && hasUnderscores(r.Header):
		detail = "the name of a header field has an underscore"
	default:
		return nil
	}
	p := problem.New(http.StatusBadRequest, detail)
	return &p
}

// isTarget reports whether the target is as RFC 9112, section 3.2, wants it. It passes
// characters that are in no URI when clients send them: RFC 3986 is older than the URL
// Standard, and stricter, and bytes beyond ASCII are not part of any framing.
func isTarget(r *http.Request) bool {
	target := r.RequestURI
	if target == "*" {
		return r.Method == http.MethodOptions
	}
	if target == "" {
		return false
	}
	if target[0] != '/' {
		scheme, rest, _ := strings.Cut(target, "://")
		if !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
			return false
		}
		authority := rest[:len(rest)-len(strings.TrimLeftFunc(rest, func(c rune) bool { return c != '/' && c != '?' }))]
		if authority == "" || !framing.IsAuthority(authority) {
			return false
		}
	}
	query := false
	for i := range len(target) {
		switch c := target[i]; {
		case c <= ' ', c == 0x7f, c == '#', !query && strings.IndexByte("\"<>\\", c) >= 0:
			return false
		case c == '?':
			query = true
		}
	}
	return true
}

// ownFields are the fields that HTTP defines to be of one connection, and the options
// that are not fields.
var ownFields = map[string]bool{
	"close": true, "keep-alive": true, "upgrade": true, "te": true, "trailer": true, "http2-settings": true,
	"transfer-encoding": true, "proxy-connection": true, "proxy-authenticate": true, "proxy-authorization": true,
}

// namesOwnFields reports whether the fields that Connection names are those of
// connections. Others are for the app: a client that may take them away, such as the
// user that a proxy in front of us authenticated, decides what the app believes.
func namesOwnFields(h http.Header) bool {
	for _, value := range h["Connection"] {
		for option := range strings.SplitSeq(value, ",") {
			option = strings.Trim(option, " \t")
			if option == "" || ownFields[strings.ToLower(option)] {
				continue
			}
			if _, present := h[http.CanonicalHeaderKey(option)]; present || forApp[strings.ToLower(option)] {
				return false
			}
		}
	}
	return true
}

// forApp are fields that net/http keeps elsewhere than in the header.
var forApp = map[string]bool{"host": true, "content-length": true}

// expectsContinue reports whether the header has no Expect, or the one that RFC 9110 defines.
func expectsContinue(h http.Header) bool {
	expect := h["Expect"]
	return len(expect) == 0 || len(expect) == 1 && strings.EqualFold(expect[0], "100-continue")
}
