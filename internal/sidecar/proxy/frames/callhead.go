package frames

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
)

// grpcType is the media type of gRPC, which may be followed by that of its messages.
const grpcType = "application/grpc"

// A callHead is the head of a call.
type callHead struct {
	verb, path, kind   string
	encoding, timeout  string
	authorities, hosts int
	malformed          bool // so that the stream is reset
}

func readCallHead(f *http2.MetaHeadersFrame) (h callHead) {
	for i := range f.Fields {
		switch value := f.Fields[i].Value; f.Fields[i].Name {
		case ":method":
			h.verb = value
		case ":path":
			h.path = value
		case ":authority":
			h.authorities++
		case "host":
			h.hosts++
		case "content-type":
			h.kind = value
		case "grpc-encoding":
			h.encoding = value
		case "grpc-timeout":
			h.timeout = value
		case "connection":
			h.malformed = true
		}
	}
	return h
}

// beginCall begins a stream as a call.
func (c *conn) beginCall(f *http2.MetaHeadersFrame) error {
	if f.Truncated {
		return streamError(f.StreamID, http2.ErrCodeFrameSize)
	}
	h := readCallHead(f)
	if h.malformed {
		return streamError(f.StreamID, http2.ErrCodeProtocol)
	}
	s := c.newStream(f)
	s.call = new(call)
	c.enter(s)
	status, refusal, ok := s.call.open(c.server.cfg.Calls, h)
	if !ok {
		s.replyAs(status, refusal)
		return nil
	}
	if s.taken, ok = c.memory.AdmitCall(); !ok {
		s.reply(noMemory)
		return nil
	}
	if s.up.ended {
		s.complete(nil)
	}
	return nil
}

// open reads what the head says, or returns the status of HTTP and the answer where it is not
// that of a call which is served.
func (k *call) open(calls *Calls, h callHead) (status int, refusal Reply, ok bool) {
	timeout, err := decodeTimeout(h.timeout)
	switch {
	case h.authorities > 1 || h.hosts > 1:
		return http.StatusBadRequest, errorReply(codes.Internal, "num values of :authority: %d, num values of host: %d, both must only have 1 value as per HTTP/2 spec", h.authorities, h.hosts), false
	case !isGRPC(h.kind):
		return http.StatusUnsupportedMediaType, errorReply(codes.InvalidArgument, "invalid gRPC request content-type %q", h.kind), false
	case err != nil:
		return http.StatusBadRequest, errorReply(codes.Internal, "malformed grpc-timeout: %v", err), false
	case h.authorities == 0 && h.hosts == 0:
		return http.StatusBadRequest, errorReply(codes.Internal, "no host or :authority header present"), false
	case h.verb != http.MethodPost:
		return http.StatusMethodNotAllowed, errorReply(codes.Internal, "Received a HEADERS frame with :method %q which should be POST", h.verb), false
	case h.timeout != "" && timeout <= 0:
		return http.StatusOK, errorReply(codes.DeadlineExceeded, "context deadline exceeded"), false
	}
	if k.method = calls.Methods[h.path]; k.method == nil {
		return http.StatusOK, Reply{Code: codes.Unimplemented, Text: calls.unknown(h.path)}, false
	}
	if h.encoding != "" && h.encoding != "identity" {
		return http.StatusOK, errorReply(codes.Unimplemented, "grpc: Decompressor is not installed for grpc-encoding %q", h.encoding), false
	}
	if h.timeout != "" {
		k.deadline = time.Now().Add(timeout)
	}
	return http.StatusOK, Reply{}, true
}

// isGRPC reports whether a content type is that of gRPC, with messages of any type.
func isGRPC(kind string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(kind), grpcType)
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// unknown says why no method has the path.
func (c *Calls) unknown(path string) string {
	at := strings.LastIndexByte(path, '/')
	if at < 1 || path[0] != '/' {
		return fmt.Sprintf("malformed method name: %q", path)
	}
	service, method := path[1:at], path[at+1:]
	for served := range c.Methods {
		if strings.HasPrefix(served, "/"+service+"/") {
			return fmt.Sprintf("unknown method %v for service %v", method, service)
		}
	}
	return fmt.Sprintf("unknown service %v", service)
}

// decodeTimeout returns the duration that a value of grpc-timeout says: at most eight digits and
// a unit. It is 0 for an empty one.
func decodeTimeout(value string) (time.Duration, error) {
	if value == "" {
		return 0, nil
	}
	digits, unit := value[:len(value)-1], timeoutUnits[value[len(value)-1]]
	if len(digits) == 0 || len(digits) > 8 || unit == 0 {
		return 0, fmt.Errorf("%q is not up to eight digits and one of H, M, S, m, u and n", value)
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not up to eight digits and one of H, M, S, m, u and n", value)
	}
	if longest := uint64(1<<63-1) / uint64(unit); n > longest {
		n = longest
	}
	return time.Duration(n) * unit, nil
}

var timeoutUnits = [256]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

// messageField returns grpc-message of a text, whose bytes other than printable ASCII are escaped.
func messageField(text string) hpack.HeaderField {
	var b strings.Builder
	for _, r := range text { // what is not UTF-8 becomes U+FFFD
		if r >= ' ' && r <= '~' && r != '%' {
			b.WriteByte(byte(r))
			continue
		}
		for _, one := range utf8.AppendRune(nil, r) {
			fmt.Fprintf(&b, "%%%02X", one)
		}
	}
	return field("grpc-message", b.String())
}
