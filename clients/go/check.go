// Package check asks the sidecar of a pod, by its check API: whether to go on, how much is left, and
// when there will be enough. It needs the standard library alone.
package check

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// DefaultURL is where the sidecar of the same pod answers.
const DefaultURL = "http://127.0.0.1:15010"

// DefaultSocket is the URL of the socket of pods with the annotation config.weir.dev/check-socket.
const DefaultSocket = "unix:///var/run/weir.dev/check.sock"

// DefaultTimeout bounds a call of a Client without an HTTP client of its own.
const DefaultTimeout = 2 * time.Second

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 1 << 20

var defaultHTTP = &http.Client{Timeout: DefaultTimeout}

// A Client asks a sidecar. Its zero value asks that of the same pod. It may be used by several
// goroutines at once, and retries nothing: a check that was counted would be counted twice.
type Client struct {
	URL  string       // http://HOST:PORT, or unix:// and the path of a socket; empty: DefaultURL
	HTTP *http.Client // nil: one with DefaultTimeout, which connects to sockets as well
}

// A Query names a counter, and units of it.
type Query struct {
	Policy string   `json:"policy"` // a RateLimitPolicy in the pod's namespace that selects the pod
	Limit  string   `json:"limit"`  // one of its limits
	Key    []string `json:"key,omitempty"`
	Tenant string   `json:"tenant,omitempty"` // who is charged, where the limit has fairness
	Cost   int64    `json:"cost,omitempty"`   // units; 0 means 1
}

// A Decision answers a check.
type Decision struct {
	Allowed      bool  `json:"allowed"` // whether to go on, after DelayMs
	Limit        int64 `json:"limit"`
	Remaining    int64 `json:"remaining"`
	ResetAfterMs int64 `json:"resetAfterMs"` // until nothing counts any more
	RetryAfterMs int64 `json:"retryAfterMs"` // until it may be allowed; 0 when waiting does not help
	DelayMs      int64 `json:"delayMs"`
}

// A State says how a query would fare.
type State struct {
	Decision

	Credits    int64  `json:"credits"`              // that the sidecar holds
	Source     string `json:"source"`               // would decide
	Reason     string `json:"reason,omitempty"`     // why the cost is refused
	StoreAgeMs *int64 `json:"storeAgeMs,omitempty"` // since the store was read, at most
	Unread     string `json:"unread,omitempty"`     // why it was not
	Shared     bool   `json:"shared,omitempty"`     // the key would share a counter
	Shadow     bool   `json:"shadow,omitempty"`     // the limit refuses nothing
}

// A Peek has a State for each query.
type Peek struct {
	Allowed      bool    `json:"allowed"` // by all
	RetryAfterMs int64   `json:"retryAfterMs"`
	Limits       []State `json:"limits"`
}

// An Outlook says when the cost of a query is admitted.
type Outlook struct {
	Admitted    string `json:"admitted"`          // Now, Later, Never or Unknown
	AfterMs     *int64 `json:"afterMs,omitempty"` // with Now and Later
	DelayMs     int64  `json:"delayMs"`
	Remaining   int64  `json:"remaining"`
	FullAfterMs int64  `json:"fullAfterMs"`
	Credits     int64  `json:"credits"`
	Source      string `json:"source"`
	Reason      string `json:"reason,omitempty"`
	StoreAgeMs  *int64 `json:"storeAgeMs,omitempty"`
	Unread      string `json:"unread,omitempty"`
	Shared      bool   `json:"shared,omitempty"`
	Shadow      bool   `json:"shadow,omitempty"`
}

// A Forecast has an Outlook for each query.
type Forecast struct {
	Admitted string    `json:"admitted"` // by all
	AfterMs  *int64    `json:"afterMs,omitempty"`
	Limits   []Outlook `json:"limits"`
}

// An Error is an answer that decides nothing.
type Error struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"` // names the field that is wrong, and the cure
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Title, e.Detail) }

// Check decides a request, and counts it. A refusal is a Decision. An error, an *Error among them,
// decides nothing: the caller chooses whether to go on.
func (c *Client) Check(ctx context.Context, q Query) (d Decision, err error) {
	err = c.ask(ctx, "/v1/check", q, &d)
	return d, err
}

// Peek says what is left for up to 16 queries, and takes nothing.
func (c *Client) Peek(ctx context.Context, all ...Query) (p Peek, err error) {
	err = c.ask(ctx, "/v1/peek", queries{all}, &p)
	return p, err
}

// Forecast says when the costs of up to 16 queries will be admitted, and takes nothing.
func (c *Client) Forecast(ctx context.Context, all ...Query) (f Forecast, err error) {
	err = c.ask(ctx, "/v1/forecast", queries{all}, &f)
	return f, err
}

type queries struct {
	Limits []Query `json:"limits"`
}

// sockets has the *http.Client for each path of a socket: connections are kept by host, and a
// socket has none.
var sockets sync.Map

// server returns the URL before the path of a request, and what sends that.
func (c *Client) server() (base string, by *http.Client) {
	base, by = c.URL, c.HTTP
	if base == "" {
		base = DefaultURL
	}
	path, local := strings.CutPrefix(base, "unix://")
	if local {
		base = "http://localhost"
	}
	switch {
	case by != nil:
		return base, by
	case !local:
		return base, defaultHTTP
	}
	known, ok := sockets.Load(path)
	if !ok {
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		known, _ = sockets.LoadOrStore(path, &http.Client{Timeout: DefaultTimeout, Transport: &http.Transport{DialContext: dial, IdleConnTimeout: time.Minute}})
	}
	return base, known.(*http.Client) //nolint:forcetypeassert // the map has nothing else
}

func (c *Client) ask(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	base, by := c.server()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	w, err := by.Do(r)
	if err != nil {
		return err
	}
	defer w.Body.Close()
	text, err := io.ReadAll(io.LimitReader(w.Body, maxAnswer))
	if err != nil {
		return err
	}
	if w.StatusCode == http.StatusOK || w.StatusCode == http.StatusTooManyRequests {
		return json.Unmarshal(text, answer)
	}
	failed := &Error{}
	if json.Unmarshal(text, failed) != nil || failed.Status == 0 {
		return fmt.Errorf("the sidecar answers %s", w.Status)
	}
	return failed
}
