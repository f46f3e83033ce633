package exchange

import (
	"github.com/weir-dev/weir/internal/sidecar/proxy/framing/framingtest"
)

type field = framingtest.Field

func line(name, value string) field { return field{Name: name, Value: value} }

// requestFields draws the fields of a request, but for those that frame it.
func (s source) requestFields(q *request) []field {
	var all []field
	if q.version == "HTTP/1.1" || s.one(2) {
		all = append(all, line(pick(s, "Host", "host", "HOST"), pick(s, "a.example", "a.example:8080", "[::1]:80", "")))
	}
	for range s.IntN(6) {
		all = append(all, pick(s,
			line("User-Agent", pick(s, "suite/1", "", "curl/8")),
			line("Accept", "*/*"),
			line("Accept-Encoding", pick(s, "gzip, br", "identity")),
			line("accept-language", "de"),
			line("Cookie", "a=b; c=d"),
			line("Cookie", "e=f"),
			line("Authorization", "Basic Og=="),
			line("X-Custom", pick(s, "", "1", "with \t blanks", "caf\xe9", "\"quoted, text\"")),
			line("x-CUSTOM", "2"),
			line("X_Under", "3"),
			line("X-Weir-Tenant", "gold"),
			line("X-Forwarded-For", pick(s, "192.0.2.1", "192.0.2.1, 192.0.2.2")),
			line("X-Forwarded-Proto", "https"),
			line("Forwarded", "for=192.0.2.1"),
			line("Via", "1.1 other"),
			line("Range", "bytes=0-1"),
			line("If-None-Match", "\"a\""),
			line("Te", pick(s, "trailers", "gzip")),
			line("Keep-Alive", "timeout=5"),
			line("Proxy-Connection", "keep-alive"),
			line("Upgrade", "h2c"),
			line("Content-Type", "text/plain"),
			line("Date", "Thu, 01 Jan 1970 00:00:00 GMT"),
			line("Origin", "null"),
			line("Pragma", "no-cache"),
			line("Max-Forwards", "3"),
			line("!#$%&'*+-.^`|~", "token"),
		))
	}
	return all
}

// answerFields draws the fields of an answer, but for those that frame it.
func (s source) answerFields() []field {
	var all []field
	for range s.IntN(6) {
		all = append(all, pick(s,
			line("Server", pick(s, "app", "")),
			line("Date", "Thu, 01 Jan 1970 00:00:00 GMT"),
			line("Content-Type", pick(s, "text/html", "")),
			line("Set-Cookie", "a=b"),
			line("set-cookie", "c=d"),
			line("X-Custom", pick(s, "", "1", "with \t blanks", "caf\xe9")),
			line("X_Under", "3"),
			line("X-Weir-Cost", "1"),
			line("Location", "/a?b#c"),
			line("ETag", "\"a\""),
			line("Vary", "*"),
			line("Link", "</a>; rel=preload"),
			line("Cache-Control", "no-store"),
			line("WWW-Authenticate", "Basic"),
			line("RateLimit", "\"own\";r=1"),
			line("X-RateLimit-Limit", "7"),
			line("Retry-After", "1"),
			line("Keep-Alive", "timeout=5"),
			line("Content-Encoding", "gzip"),
			line("X-Content-Type-Options", "nosniff"),
		))
	}
	return all
}

// trailer draws the fields behind a body.
func (s source) trailer() []field {
	var all []field
	for range pick(s, 0, 0, 0, 1, 2) {
		all = append(all, pick(s,
			line("X-Checksum", "abc"),
			line("x-lower", "1"),
			line("X_Under", "2"),
			line("X-Empty", ""),
			line("Server-Timing", "a;dur=1"),
		))
	}
	return all
}
