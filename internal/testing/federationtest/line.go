package federationtest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/store"
)

// errAway is the error of a message that arrives while the hub is away.
var errAway = &store.UnavailableError{Store: "test", Cause: errors.New("away")}

// A Line is the way of one member to the hub. Set changes its fields once it is used.
type Line struct {
	hub *Hub
	mu  sync.Mutex

	There, Back func() time.Duration // how long a message and its answer take
	Cut         bool                 // nothing arrives, and calls take until they are given up
	Lose        func() bool          // the next message, or the next answer
	Twice       func() bool          // the next message arrives once more

	Commands []ledger.Command // that were sent
	Sent     []time.Time      // when
}

// NewLine returns a line on which messages and answers take that long each.
func NewLine(h *Hub, each time.Duration) *Line {
	no := func() bool { return false }
	return &Line{hub: h, There: Always(each), Back: Always(each), Lose: no, Twice: no}
}

// Always returns a delay that does not change.
func Always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// Set has change write to the line's fields while no message is sent.
func (l *Line) Set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// SetCut cuts the line, or mends it.
func (l *Line) SetCut(cut bool) { l.Set(func() { l.Cut = cut }) }

// Apply implements federation.Coordinator.
func (l *Line) Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	l.Set(func() { l.Commands, l.Sent = append(l.Commands, c), append(l.Sent, time.Now()) })
	return send(ctx, l, func(ctx context.Context) (ledger.Grant, error) {
		if to := l.hub.Totals(); to != nil {
			return to.Apply(ctx, id, p, c)
		}
		return ledger.Grant{}, errAway
	})
}

// Observe implements federation.Coordinator. It takes no time.
func (l *Line) Observe(ctx context.Context, id string) (ledger.State, error) {
	return l.hub.Totals().Observe(ctx, id)
}

// ApplyKeys implements keyed.Coordinator.
func (l *Line) ApplyKeys(ctx context.Context, id string, p ledger.Params, r keys.Request) (keys.Reply, error) {
	return send(ctx, l, func(ctx context.Context) (keys.Reply, error) {
		if to := l.hub.receive(len(r.Asks)); to != nil {
			return to.ApplyKeys(ctx, id, p, r)
		}
		return keys.Reply{}, errAway
	})
}

// send has the hub answer a message, as the line is when it is sent.
func send[T any](ctx context.Context, l *Line, answer func(context.Context) (T, error)) (none T, _ error) {
	l.mu.Lock()
	there, back, lost, unanswered, twice := l.There(), l.Back(), l.Cut || l.Lose(), l.Lose(), l.Twice()
	l.mu.Unlock()
	if lost {
		return none, givenUp(ctx)
	}
	arrived := Wait(ctx, there)
	out, err := answer(context.WithoutCancel(ctx)) // although nobody may wait for it any more
	switch {
	case !arrived:
		return none, givenUp(ctx)
	case errors.Is(err, errAway):
		return none, err
	}
	if twice {
		_, _ = answer(context.WithoutCancel(ctx))
	}
	if unanswered || !Wait(ctx, back) {
		return none, givenUp(ctx)
	}
	return out, err
}

// givenUp waits until a call is given up and returns its error.
func givenUp(ctx context.Context) error {
	<-ctx.Done()
	return &store.UnavailableError{Store: "test", Cause: ctx.Err()}
}

// Wait reports whether that much time passed before the call was given up.
func Wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
