package federationtest

import (
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/coordinator/memory"
	"github.com/weir-dev/weir/pkg/federation/keyed"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A Hub is a coordinator in the hands of a test: it can be replaced, be away, and lose its memory.
type Hub struct {
	Rate float64 // of its clock, as a multiple of that of the test

	ahead time.Duration // of the clock of the test, when the hub was made
	begin time.Time

	mu     sync.Mutex
	term   int64
	totals federation.Coordinator // of budgets as a whole; nil while it is away
	values keyed.Coordinator      // of budgets with a key; nil while it is away
	seen   Seen
}

// Seen is what arrived at a hub about values of keys.
type Seen struct{ Messages, Asks, Largest int }

// NewHub returns a hub that serves, whose clock is ahead of that of the test.
func NewHub(ahead time.Duration) *Hub {
	h := &Hub{Rate: 1, ahead: ahead, begin: time.Now()}
	h.Restart(true)
	return h
}

// Now reads the hub's clock.
func (h *Hub) Now() limiter.Instant {
	passed := time.Duration(float64(time.Since(h.begin)) * h.Rate)
	return limiter.Instant(h.begin.Add(h.ahead + passed).UnixMicro())
}

// Restart replaces the coordinator by one that knows nothing, with a term of its own. The first of
// all knows that there was none before.
func (h *Hub) Restart(first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.term++
	c := memory.New(memory.Options{Clock: h.Now, Term: h.term, First: first})
	h.totals, h.values = c, c
}

// Stop has the hub be away.
func (h *Hub) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.totals, h.values = nil, nil
}

// Totals returns the coordinator of budgets as a whole; nil while it is away.
func (h *Hub) Totals() federation.Coordinator {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.totals
}

// ReplaceTotals puts another coordinator of budgets as a whole in the place of the one that is
// there.
func (h *Hub) ReplaceTotals(by federation.Coordinator) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.totals = by
}

// ReplaceValues puts another coordinator of budgets with a key in the place of the one that is
// there, which it returns.
func (h *Hub) ReplaceValues(by func(keyed.Coordinator) keyed.Coordinator) keyed.Coordinator {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.values
	h.values = by(before)
	return before
}

// Seen returns what arrived while the hub was there.
func (h *Hub) Seen() Seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen
}

// receive counts a message and returns the coordinator that is to answer it.
func (h *Hub) receive(asks int) keyed.Coordinator {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.values != nil {
		h.seen = Seen{Messages: h.seen.Messages + 1, Asks: h.seen.Asks + asks, Largest: max(h.seen.Largest, asks)}
	}
	return h.values
}
