package proxy

import (
	"net/http"
	"net/http/httputil"
	"strings"
	"time"
)

// idleHTTP1 is how long a connection to the app may be idle over HTTP/1.1. An app closes one
// without a word, after 2 seconds or 5 as servers come, so ours are gone before. To open one costs
// little within a pod, and those that are in use at least once a second stay.
const idleHTTP1 = time.Second

// newTransport returns the connections to the app over HTTP/1.1.
func newTransport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext:         checked(toApp.DialContext),
		Protocols:           protocols,
		MaxIdleConnsPerHost: maxIdle,
		IdleConnTimeout:     idleHTTP1,
		DisableCompression:  true, // bodies pass as they are
		// Waiting for the app's "100 Continue" is up to the client's patience.
		ExpectContinueTimeout: time.Second,
	}
}

// rewrite addresses a request to the app. Apart from the peer's address, which
// the app no longer sees for itself, it passes as it came.
func rewrite(pr *httputil.ProxyRequest, target string, underscores Underscores) {
	pr.Out.URL.Scheme, pr.Out.URL.Host = "http", target
	pr.Out.URL.Opaque = pathOf(pr.In.RequestURI)
	pr.Out.URL.RawQuery = pr.In.URL.RawQuery // as it came, even where it does not parse
	pr.Out.Trailer = pr.In.Trailer           // filled when the body has been read
	sendAgain(pr.Out, pr.In, underscores.passes(pr.In))
	for _, name := range []string{"Forwarded", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := pr.In.Header[name]; ok {
			pr.Out.Header[name] = values
		}
	}
	if hops := hopsOf(pr.In); len(hops) > 0 {
		pr.Out.Header.Set("X-Forwarded-For", strings.Join(hops, ", "))
	}
}

// pathOf returns the path of a target as it came: written again, it may be escaped
// another way. It is empty where net/url has no place for it: it takes two slashes for a
// host.
func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	if _, rest, absolute := strings.Cut(path, "://"); absolute && path[0] != '/' {
		path = rest[len(rest)-len(strings.TrimLeftFunc(rest, func(c rune) bool { return c != '/' })):]
	}
	if strings.HasPrefix(path, "//") || !strings.HasPrefix(path, "/") {
		return ""
	}
	return path
}

// ownPrefix begins the names of headers that only we set.
const ownPrefix = "X-Weir-"

// websocket is the one protocol that a connection may become.
const websocket = "websocket"

// sanitize removes from a request what its sender has no say in: our own headers,
// and a change of protocol other than to WebSocket. A connection that the app
// switched to h2c would carry further requests past every limit.
func sanitize(h http.Header) {
	withoutOwn(h)
	if upgrade := h["Upgrade"]; len(upgrade) > 0 && (len(upgrade) > 1 || !strings.EqualFold(upgrade[0], websocket)) {
		h.Del("Upgrade")
		h.Del("Http2-Settings")
	}
}

// withoutOwn removes our own headers.
func withoutOwn(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, ownPrefix) {
			delete(h, name)
		}
	}
}
