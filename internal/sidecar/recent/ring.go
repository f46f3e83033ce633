package recent

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/pkg/store"
)

// Kept is how many refusals a Ring has at most.
const Kept = 128

// maxText bounds each text of a client's, in bytes.
const maxText = 256

// A Refusal is a request that the sidecar answered in place of the app.
type Refusal struct {
	Time      time.Time `json:"time"`
	RequestID string    `json:"requestId,omitempty"` // X-Request-Id
	TraceID   string    `json:"traceId,omitempty"`   // of traceparent (W3C Trace Context)
	Method    string    `json:"method"`
	Path      string    `json:"path"` // without the query, which may hold secrets
	Status    int       `json:"status"`
	Reason    string    `json:"reason,omitempty"` // as gRPC clients find it in ErrorInfo
	Object    string    `json:"object,omitempty"` // kind/name of what refused
	Limit     string    `json:"limit,omitempty"`  // of a policy
	Hash      string    `json:"hash,omitempty"`   // of the key's value, as in status.hottestKeys
	// RetryAfter is the answer's field of that name, in seconds.
	RetryAfter string `json:"retryAfter,omitempty"`
	Detail     string `json:"detail"`
}

// Of returns the refusal of r that p is, with the header of the answer. value is the key's, empty
// for none.
func Of(now time.Time, r *http.Request, p *problem.Problem, header http.Header, value string) Refusal {
	x := Refusal{
		Time: now, RequestID: text(r.Header.Get("X-Request-Id")), TraceID: traceID(r.Header.Get("Traceparent")), Method: text(r.Method),
		Status: p.Status, Reason: p.Reason, Limit: p.Source["limit"], RetryAfter: header.Get("Retry-After"), Detail: p.Detail,
	}
	if r.URL != nil {
		x.Path = text(r.URL.Path)
	}
	if policy := p.Source["policy"]; policy != "" {
		x.Object = "ratelimitpolicy/" + policy
	} else if pool := p.Source["pool"]; pool != "" {
		x.Object = "concurrencypool/" + pool
	}
	if value != "" {
		x.Hash = store.HashValue(value)
	}
	return x
}

// text returns the beginning of what a client sent, without keeping the rest of its header in memory.
func text(s string) string { return strings.Clone(s[:min(len(s), maxText)]) }

// traceID returns the second part of a traceparent.
func traceID(parent string) string {
	const version, id = len("00-"), 32
	if len(parent) < version+id || parent[version-1] != '-' {
		return ""
	}
	return strings.Clone(parent[version : version+id])
}

// A Ring keeps the last refusals. Its zero value is empty and ready, and nil keeps nothing. Several
// goroutines may use it at once.
type Ring struct {
	mu    sync.Mutex
	all   []Refusal
	added int
}

// Add keeps a refusal in place of the oldest.
func (r *Ring) Add(x *Refusal) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) < Kept {
		r.all = append(r.all, *x)
	} else {
		r.all[r.added%Kept] = *x
	}
	r.added++
}

// All returns what is kept, the newest first, and how many were added since the beginning.
func (r *Ring) All() (all []Refusal, added int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all = make([]Refusal, 0, len(r.all))
	for i := range r.all {
		all = append(all, r.all[(r.added-1-i)%len(r.all)])
	}
	return all, r.added
}
