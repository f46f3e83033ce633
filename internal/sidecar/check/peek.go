package check

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/problem"
)

// Where counters are looked at and nothing is taken.
const (
	PeekPath     = "/v1/peek"     // what is left
	ForecastPath = "/v1/forecast" // when a cost will be admitted
	ResetPath    = "/v1/reset"    // refused, with noReset
)

// noReset says why a counter is not set back here, and the cure.
const noReset = "a sidecar sets no counter back: every container of a pod reaches it, and the counter limits all pods. " +
	"Annotate the policy with weir.dev/reset, which takes the verb reset on ratelimitpolicies.weir.dev"

// A known is what an answer is based on.
type known struct {
	Credits    int64  `json:"credits"`              // units that this sidecar holds
	Source     string `json:"source"`               // who would decide
	Reason     string `json:"reason,omitempty"`     // of a refusal
	StoreAgeMs *int64 `json:"storeAgeMs,omitempty"` // how long ago the store was read, at most
	Unread     string `json:"unread,omitempty"`     // why it was not
	Shared     bool   `json:"shared,omitempty"`     // the value shares its counter with others
	Shadow     bool   `json:"shadow,omitempty"`     // the limit refuses nothing
}

// A peeked is what is left of one limit.
type peeked struct {
	answer
	known
}

// A preview is what is left of all limits, in the order of the request.
type preview struct {
	Allowed      bool     `json:"allowed"`      // by all
	RetryAfterMs int64    `json:"retryAfterMs"` // until all may allow it; 0 when allowed, or when waiting does not help
	Limits       []peeked `json:"limits"`
}

// An arrival says when a cost will be admitted if nobody else takes units meanwhile.
type arrival struct {
	Admitted string `json:"admitted"`          // Now, Later, Never or Unknown
	AfterMs  *int64 `json:"afterMs,omitempty"` // of Now and Later
}

// A forecast is what one limit says of a cost.
type forecast struct {
	arrival
	DelayMs     int64 `json:"delayMs"`     // to wait once it is admitted
	Remaining   int64 `json:"remaining"`   // that could be had now
	FullAfterMs int64 `json:"fullAfterMs"` // until nothing counts any more
	known
}

// A prospect is when all limits will admit their costs, in the order of the request.
type prospect struct {
	arrival
	Limits []forecast `json:"limits"`
}

// servePeek answers with what is left, and serveForecast with when it will be enough.
func (h *Handler) servePeek(w http.ResponseWriter, r *http.Request) {
	h.look(w, r, func(all []enforce.Outlook) any { return previewOf(all) })
}

func (h *Handler) serveForecast(w http.ResponseWriter, r *http.Request) {
	h.look(w, r, func(all []enforce.Outlook) any { return prospectOf(all) })
}

func (h *Handler) look(w http.ResponseWriter, r *http.Request, answerOf func([]enforce.Outlook) any) {
	body, refused := read(w, r)
	if refused != nil {
		refused.Write(w, r)
		return
	}
	qs, err := parseAll(body)
	if err != nil {
		problem.New(http.StatusBadRequest, err.Error()).Write(w, r)
		return
	}
	all, err := h.peek(r.Context(), qs)
	if err != nil {
		p := h.problemOf(err)
		if of, ok := errors.AsType[*enforce.QueryError](err); ok && len(qs) > 1 {
			p.Detail = fmt.Sprintf("limits[%d]: %s", of.At, p.Detail)
		}
		p.Write(w, r)
		return
	}
	h.write(w, r, http.StatusOK, answerOf(all))
}

func (h *Handler) peek(ctx context.Context, qs []enforce.Query) (all []enforce.Outlook, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			h.Metrics.Panics.Inc()
			h.Log.Error("a peek panicked", "panic", reason, "stack", string(debug.Stack()))
			all, err = nil, fmt.Errorf("panic: %v", reason)
		}
	}()
	return h.Checker.Peek(ctx, qs)
}
