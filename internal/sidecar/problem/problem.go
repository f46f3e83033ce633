package problem

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-dev/weir/pkg/policy"
)

// Types of the registry of HTTP problem types. Other problems are distinguished by
// their status alone.
const (
	QuotaExceeded            = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	TemporaryReducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// A Problem says why a request is refused.
type Problem struct {
	Type   string `json:"type,omitempty"` // absent means about:blank
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// ViolatedPolicies are the names of the limits that refused.
	ViolatedPolicies []string `json:"violated-policies,omitempty"`

	Body policy.BodyType `json:"-"` // empty: ProblemJSON

	Code   int               `json:"-"` // of gRPC; 0: as Status
	Reason string            `json:"-"` // for programs, in capitals; gRPC clients find it in ErrorInfo
	Source map[string]string `json:"-"` // what refused, for ErrorInfo
}

// New returns a problem that its status distinguishes.
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
	contentType, body := p.body()
	if contentType != "" {
		w.Header().Set("Content-Type", contentType)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // an error means that the client is gone
}

func (p Problem) body() (contentType string, body []byte) {
	switch p.Body {
	case policy.NoBody:
		return "", nil
	case policy.TextBody:
		return "text/plain; charset=utf-8", []byte(p.Title + ": " + p.Detail + "\n")
	default:
		body, err := json.Marshal(p)
		if err != nil { // it has nothing that has no JSON
			return "text/plain; charset=utf-8", []byte(p.Title + "\n")
		}
		return "application/problem+json", append(body, '\n')
	}
}

// Seconds returns d in whole seconds, rounded up, at least 1: a client that waits
// that long is not too early.
func Seconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

// RetryAfter says when to come back. Without a positive d it says nothing.
func RetryAfter(h http.Header, d time.Duration) {
	if d > 0 {
		h.Set("Retry-After", strconv.FormatInt(Seconds(d), 10))
	}
}
