package storeprobe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

const (
	// freshFor is how long an answer stands. An outage is seen that late by the
	// controller, and at once by sidecars.
	freshFor = 10 * time.Second
	// timeout bounds one call.
	timeout = time.Second
)

// hardReason is what the grade Hard rests on, for which a server gives no reason.
const hardReason = "one server that never forgets a counter while it runs; a restart that may have lost grants costs the open windows"

// An Opener opens a store with the values of the Secret it names. It does not wait
// for a connection.
type Opener func(of policy.Store, secret map[string][]byte) (backend.Backend, error)

// A Prober asks stores and remembers their answers for a moment. It is safe for
// concurrent use.
type Prober struct {
	clock clock.PassiveClock
	open  Opener

	mu      sync.Mutex
	answers map[policy.Store]answer // guarded by mu
}

type answer struct {
	guarantee v1alpha1.Guarantee
	err       error
	at        time.Time
}

// New returns a Prober.
func New(open Opener) *Prober { return newProber(clock.RealClock{}, open) }

func newProber(c clock.PassiveClock, open Opener) *Prober {
	return &Prober{clock: c, open: open, answers: make(map[policy.Store]answer)}
}

// Probe returns what a store guarantees. It blocks for at most a second. An error
// means that the store could not be asked, or does not let itself be used.
func (p *Prober) Probe(ctx context.Context, of policy.Store, secret map[string][]byte) (v1alpha1.Guarantee, error) {
	if a, ok := p.remembered(of); ok {
		return a.guarantee, a.err
	}
	a := answer{at: p.clock.Now()}
	a.err = p.with(ctx, of, secret, func(ctx context.Context, s backend.Backend) error {
		guarantee, err := s.Probe(ctx)
		if err == nil {
			a.guarantee = describe(guarantee)
		}
		return err
	})
	p.remember(of, a)
	return a.guarantee, a.err
}

// Clock returns what a store's clock reads. It asks each time and blocks for at
// most a second.
func (p *Prober) Clock(ctx context.Context, of policy.Store, secret map[string][]byte) (now limiter.Instant, err error) {
	// A peek changes nothing, so any name will do.
	key := store.Key{Scope: store.Scope{Cluster: "weir", Namespace: "weir", Policy: "clock", Limit: "clock"}}
	params := limiter.Params{Rates: []limiter.Rate{{Limit: 1, Window: limiter.MinWindow}}}
	err = p.with(ctx, of, secret, func(ctx context.Context, s backend.Backend) error {
		res, err := s.Apply(ctx, key, params, limiter.Command{Op: limiter.Peek, Min: 1, Want: 1})
		now = res.Now
		return err
	})
	return now, err
}

// with connects for one call only: a connection kept for every server that a
// policy once named would never be given back.
func (p *Prober) with(ctx context.Context, of policy.Store, secret map[string][]byte, ask func(context.Context, backend.Backend) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s, err := p.open(of, secret)
	if err != nil {
		return err
	}
	err = ask(ctx, s)
	if closeErr := s.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("closing the connection: %w", closeErr)
	}
	return lasting(err)
}

// lasting returns the error without what differs each time, such as the own port:
// what a status says should not change while nothing else does.
func lasting(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil {
		return fmt.Errorf("%s %s: %w", op.Op, op.Addr, op.Err)
	}
	return err
}

func (p *Prober) remembered(of policy.Store) (answer, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok := p.answers[of]
	return a, ok && p.fresh(a)
}

// remember also forgets answers that no longer stand: policies come and go.
func (p *Prober) remember(of policy.Store, a answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for old, b := range p.answers {
		if !p.fresh(b) {
			delete(p.answers, old)
		}
	}
	p.answers[of] = a
}

func (p *Prober) fresh(a answer) bool { return p.clock.Since(a.at) < freshFor }

// describe puts a store's guarantee into the words of the API, which has a reason
// for every grade.
func describe(g store.Guarantee) v1alpha1.Guarantee {
	return v1alpha1.Guarantee{Grade: v1alpha1.GuaranteeGrade(g.Grade), Reason: cmp.Or(g.Reason, hardReason)}
}
