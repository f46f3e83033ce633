package frames

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// Fields are those of an answer, or of its trailer; see exchange.Fields.
type Fields struct {
	list   []hpack.HeaderField // without pseudo-header fields
	header http.Header         // made of list; nil until it is asked for
}

// Get returns the first value of the field of that name, which is in lower case.
func (f *Fields) Get(name string) string {
	for i := range f.list {
		if f.list[i].Name == name {
			return f.list[i].Value
		}
	}
	return ""
}

// Header returns the fields as net/http has them. A change of them changes the answer.
func (f *Fields) Header() http.Header {
	if f.header == nil {
		f.header = make(http.Header, len(f.list))
		for _, one := range f.list {
			name := http.CanonicalHeaderKey(one.Name)
			f.header[name] = append(f.header[name], one.Value)
		}
	}
	return f.header
}

// all returns the fields as they are sent.
func (f *Fields) all() []hpack.HeaderField {
	if f.header == nil {
		return f.list
	}
	return appendFields(f.list[:0:0], f.header)
}

// appendFields appends the fields of a header, in alphabetical order.
func appendFields(to []hpack.HeaderField, h http.Header) []hpack.HeaderField {
	var few [32]string
	names := few[:0]
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		low := lower(name)
		for _, value := range h[name] {
			if low != "cookie" {
				to = append(to, field(low, value))
				continue
			}
			for crumb := range strings.SplitSeq(value, "; ") { // RFC 9113, section 8.2.3
				to = append(to, field(low, crumb))
			}
		}
	}
	return to
}

// lower returns a name in lower case.
func lower(name string) string {
	if low, ok := lowered[name]; ok {
		return low
	}
	return strings.ToLower(name)
}

// lowered are names that are frequent.
var lowered = func() map[string]string {
	all := map[string]string{}
	for _, name := range []string{
		"Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Baggage", "Cache-Control", "Content-Length", "Content-Type", "Cookie",
		"Date", "Grpc-Accept-Encoding", "Grpc-Encoding", "Grpc-Message", "Grpc-Status", "Grpc-Timeout", "Ratelimit", "Ratelimit-Policy", "Referer",
		"Retry-After", "Server", "Set-Cookie", "Te", "Traceparent", "Tracestate", "User-Agent", "Vary", "X-Forwarded-For", "X-Forwarded-Host",
		"X-Forwarded-Proto", "X-Request-Id",
	} {
		all[name] = strings.ToLower(name)
	}
	return all
}()

// fieldsOf returns the head of an answer of the sidecar's own.
func fieldsOf(w *exchange.Recorder) []hpack.HeaderField {
	w.WriteHeader(http.StatusOK)
	h := w.Header()
	if h["Date"] == nil {
		h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	return appendFields([]hpack.HeaderField{field(":status", strconv.Itoa(w.Status))}, h)
}

// ofConnection reports whether a field of an answer ends at the sidecar.
func ofConnection(name string) bool {
	switch name {
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "te", "proxy-authenticate", "proxy-authorization":
		return true
	}
	return false
}

// lengthOf returns what a value of Content-Length says, or -1.
func lengthOf(value string) int64 {
	if n, err := strconv.ParseUint(value, 10, 63); err == nil {
		return int64(n)
	}
	return -1
}
