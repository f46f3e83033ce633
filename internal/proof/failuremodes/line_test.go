package failuremodes_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/store"
)

// A line is the way of one region to the coordinator.
type line struct {
	w *world

	mu          sync.Mutex // guards all below
	to          federation.Coordinator
	there, back func() time.Duration
	cut         bool // no command arrives
	mute        bool // no answer does
	twice       bool // every command arrives twice
	grants      []ledger.Grant
}

func newLine(w *world, to federation.Coordinator) *line {
	l := &line{w: w, to: to}
	if w.hub != nil {
		l.delay(func() time.Duration { return way })
	}
	return l
}

func (l *line) set(f func(l *line)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
}

// delay makes every message take that long.
func (l *line) delay(d func() time.Duration) { l.set(func(l *line) { l.there, l.back = d, d }) }

// Apply implements federation.Coordinator. A command arrives although nobody waits for
// its answer any more.
func (l *line) Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	l.mu.Lock()
	to, cut, mute, twice, there, back := l.to, l.cut, l.mute, l.twice, l.there, l.back
	l.mu.Unlock()
	if there == nil { // a real server is as far away as it is
		g, err := to.Apply(ctx, id, p, c)
		l.note(g, err)
		return g, err
	}
	if cut {
		<-ctx.Done()
		return ledger.Grant{}, lost(ctx.Err())
	}
	if l.w.hub != nil {
		p.Block = l.w.params.Block // a hub knows the parameters itself
	}
	type answer struct {
		grant ledger.Grant
		err   error
	}
	answers := make(chan answer, 2)
	carry := func() {
		time.Sleep(there())
		g, err := to.Apply(context.WithoutCancel(ctx), id, p, c)
		time.Sleep(back())
		answers <- answer{g, err}
	}
	l.w.carried.Go(carry)
	if twice {
		l.w.carried.Go(carry)
	}
	heard := answers
	if mute {
		heard = nil
	}
	select {
	case a := <-heard:
		l.note(a.grant, a.err)
		return a.grant, a.err
	case <-ctx.Done():
		return ledger.Grant{}, lost(ctx.Err())
	}
}

// Observe implements federation.Coordinator.
func (l *line) Observe(ctx context.Context, id string) (ledger.State, error) {
	l.mu.Lock()
	to := l.to
	l.mu.Unlock()
	return to.Observe(ctx, id)
}

func (l *line) note(g ledger.Grant, err error) {
	if err == nil {
		l.set(func(l *line) { l.grants = append(l.grants, g) })
	}
}

func lost(cause error) error {
	return &store.UnavailableError{Store: "the coordinator", Cause: errors.Join(errors.New("nothing was answered"), cause)}
}

// unserved returns how many windows the coordinator granted nothing of because they began
// before its memory did, since the answers of these numbers.
func (w *world) unserved(since []int) float64 {
	indexes := map[int64]bool{}
	for i, r := range w.regions {
		r.line.set(func(l *line) {
			for _, g := range l.grants[since[i]:] {
				if g.Reason == ledger.Amnesia {
					indexes[g.Epoch.Index] = true
				}
			}
		})
	}
	return float64(len(indexes))
}

// answered returns how many answers each region had.
func (w *world) answered() (numbers []int) {
	for _, r := range w.regions {
		r.line.set(func(l *line) { numbers = append(numbers, len(l.grants)) })
	}
	return numbers
}
