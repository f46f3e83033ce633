package problem

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Types of the registry of HTTP problem types. Other problems are told apart by
// their status alone.
const (
	QuotaExceeded            = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	TemporaryReducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// A Problem is the body of a refusal.
type Problem struct {
	Type   string `json:"type,omitempty"` // absent means about:blank
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// ViolatedPolicies are the names of the limits that refused.
	ViolatedPolicies []string `json:"violated-policies,omitempty"`
}

// New returns a problem that its status tells apart.
func New(status int, detail string) Problem {
	return Problem{Title: http.StatusText(status), Status: status, Detail: detail}
}

// Write answers r with p, in the way the client understands. Headers that are
// set already are sent along.
func (p Problem) Write(w http.ResponseWriter, r *http.Request) {
	if IsGRPC(r) {
		p.writeGRPC(w)
		return
	}
	body, err := json.Marshal(p)
	if err != nil {
		http.Error(w, p.Title, p.Status)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // nobody is left to tell when the client is gone
}

// Codes of gRPC.
const (
	grpcUnknown           = 2
	grpcInvalidArgument   = 3
	GRPCDeadlineExceeded  = 4
	grpcResourceExhausted = 8
	grpcInternal          = 13
	GRPCUnavailable       = 14
)

var grpcCodes = map[int]int{
	http.StatusBadRequest:          grpcInvalidArgument,
	http.StatusTooManyRequests:     grpcResourceExhausted,
	http.StatusInternalServerError: grpcInternal,
	http.StatusBadGateway:          GRPCUnavailable,
	http.StatusServiceUnavailable:  GRPCUnavailable,
}

// IsGRPC reports whether r is a gRPC call. gRPC-Web is not: it travels as a body.
func IsGRPC(r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.Header.Get("Content-Type"), "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// GRPCStatus returns the code that ended a gRPC answer, by the header of its writer, or
// -1 when there is none.
func GRPCStatus(h http.Header) int {
	for _, field := range []string{"Grpc-Status", http.TrailerPrefix + "Grpc-Status"} {
		if value := h[field]; len(value) == 1 {
			if code, err := strconv.Atoi(value[0]); err == nil {
				return code
			}
		}
	}
	return -1
}

// writeGRPC answers with a response of trailers only.
func (p Problem) writeGRPC(w http.ResponseWriter) {
	code, ok := grpcCodes[p.Status]
	if !ok {
		code = grpcUnknown
	}
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Set("Grpc-Status", strconv.Itoa(code))
	h.Set("Grpc-Message", percentEncode(p.Detail))
	w.WriteHeader(http.StatusOK)
}

// percentEncode writes a status message as the gRPC protocol wants it.
func percentEncode(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '%' {
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Seconds returns d in whole seconds, rounded up, at least 1: a client that waits
// so long is not too early.
func Seconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

// RetryAfter says when to come back. Without a positive d it says nothing.
func RetryAfter(h http.Header, d time.Duration) {
	if d > 0 {
		h.Set("Retry-After", strconv.FormatInt(Seconds(d), 10))
	}
}
