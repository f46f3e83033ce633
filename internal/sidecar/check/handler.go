package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// Path is where decisions are made.
const Path = "/v1/check"

// A Checker asks limits; see enforce.Enforcer.
type Checker interface {
	Check(ctx context.Context, q enforce.Query) (twotier.Decision, error)
	Peek(ctx context.Context, qs []enforce.Query) ([]enforce.Outlook, error)
}

// A Handler serves the API.
type Handler struct {
	Checker Checker
	Metrics *metrics.Metrics
	Log     *slog.Logger
}

// answer is the body of every decision.
type answer struct {
	Allowed      bool  `json:"allowed"`
	Limit        int64 `json:"limit"`
	Remaining    int64 `json:"remaining"`
	ResetAfterMs int64 `json:"resetAfterMs"`
	RetryAfterMs int64 `json:"retryAfterMs"` // 0 when allowed, or when waiting does not help
	DelayMs      int64 `json:"delayMs"`      // allowed: after that long
}

// delayHeader says in milliseconds how long to wait before going on, when there is
// something to wait for.
const delayHeader = "X-Weir-Delay-Ms"

// ServeHTTP answers what is asked, or with a problem that says what to do.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case Path:
		h.serveCheck(w, r)
	case PeekPath:
		h.servePeek(w, r)
	case ForecastPath:
		h.serveForecast(w, r)
	case ResetPath:
		problem.New(http.StatusForbidden, noReset).Write(w, r)
	default:
		problem.New(http.StatusNotFound, fmt.Sprintf("there is nothing here: POST to %s, %s or %s", Path, PeekPath, ForecastPath)).Write(w, r)
	}
}

// serveCheck answers a decision with 200 or 429.
func (h *Handler) serveCheck(w http.ResponseWriter, r *http.Request) {
	body, refused := read(w, r)
	if refused != nil {
		refused.Write(w, r)
		return
	}
	q, err := parse(body)
	if err != nil {
		problem.New(http.StatusBadRequest, err.Error()).Write(w, r)
		return
	}
	decision, err := h.check(r.Context(), q)
	if err != nil {
		h.problemOf(err).Write(w, r)
		return
	}
	status := http.StatusOK
	if !decision.Allowed {
		status = http.StatusTooManyRequests
		problem.RetryAfter(w.Header(), decision.RetryAfter)
	}
	answer := answerOf(decision)
	if answer.DelayMs > 0 {
		w.Header().Set(delayHeader, strconv.FormatInt(answer.DelayMs, 10))
	}
	h.write(w, r, status, answer)
}

func (h *Handler) write(w http.ResponseWriter, r *http.Request, status int, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		h.problemOf(err).Write(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // an error means that the client is gone
}

// read returns the body of a request, or the problem with it.
func read(w http.ResponseWriter, r *http.Request) ([]byte, *problem.Problem) {
	refuse := func(status int, detail string) ([]byte, *problem.Problem) {
		p := problem.New(status, detail)
		return nil, &p
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return refuse(http.StatusMethodNotAllowed, "method "+r.Method+" is not allowed: use POST")
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return refuse(http.StatusBadRequest, "the header Content-Type is not application/json: set it")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			return refuse(http.StatusBadRequest, fmt.Sprintf("the body has more than %d bytes: send a shorter key", maxBody))
		}
		return refuse(http.StatusBadRequest, "the body could not be read: send it whole")
	}
	return body, nil
}

func (h *Handler) check(ctx context.Context, q enforce.Query) (d twotier.Decision, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			h.Metrics.Panics.Inc()
			h.Log.Error("a check panicked", "panic", reason, "stack", string(debug.Stack()))
			d, err = twotier.Decision{}, fmt.Errorf("panic: %v", reason)
		}
	}()
	start := time.Now()
	d, err = h.Checker.Check(ctx, q)
	h.Metrics.Decision.Observe(time.Since(start).Seconds())
	return d, err
}

func (h *Handler) problemOf(err error) problem.Problem {
	var notFound *enforce.NotFoundError
	var key *enforce.KeyError
	var tenant *enforce.TenantError
	var cost *enforce.CostError
	var away *store.UnavailableError
	switch {
	case errors.As(err, &notFound):
		return problem.New(http.StatusNotFound, fmt.Sprintf("field %q: %s", notFound.Field, notFound))
	case errors.As(err, &key):
		return problem.New(http.StatusBadRequest, fmt.Sprintf("field %q: %s", "key", key))
	case errors.As(err, &tenant):
		return problem.New(http.StatusBadRequest, fmt.Sprintf("field %q: %s", "tenant", tenant))
	case errors.As(err, &cost):
		return problem.New(http.StatusBadRequest, fmt.Sprintf("field %q: %s", "cost", cost))
	case errors.As(err, &away): // of a check that peeks, which no failure action answers
		return problem.New(http.StatusServiceUnavailable, away.Error())
	case errors.Is(err, context.Canceled):
		return problem.New(http.StatusServiceUnavailable, "the request was cancelled")
	default:
		h.Metrics.Errors.Inc()
		h.Log.Error("a check was not decided", "error", err)
		return problem.New(http.StatusInternalServerError, "the rate limiter failed")
	}
}

func answerOf(d twotier.Decision) answer {
	a := answer{
		Allowed:      d.Allowed,
		Limit:        d.Limit,
		Remaining:    d.Remaining,
		ResetAfterMs: millis(d.ResetAfter),
	}
	if d.Allowed {
		a.DelayMs = millis(d.Delay)
	} else {
		a.RetryAfterMs = millis(d.RetryAfter)
	}
	return a
}

// millis rounds up, so that a client that waits that long is not too early.
func millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
