package redisprobe

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/redis"
)

const (
	// freshFor is how long an answer stands. An outage is seen that late by the
	// controller, and at once by sidecars.
	freshFor = 10 * time.Second
	// timeout bounds one probe.
	timeout = time.Second
)

// hardReason is what the grade Hard rests on, for which a server gives no reason.
const hardReason = "one Redis that never evicts; a restart of it costs the open windows"

// A Prober asks Redis servers and remembers their answers for a moment. It is
// safe for concurrent use.
type Prober struct {
	clock clock.PassiveClock
	ask   func(ctx context.Context, address string) (store.Guarantee, error)

	mu      sync.Mutex
	answers map[string]answer // by address; guarded by mu
}

type answer struct {
	guarantee v1alpha1.Guarantee
	err       error
	at        time.Time
}

// New returns a Prober.
func New() *Prober { return newProber(clock.RealClock{}, ask) }

func newProber(c clock.PassiveClock, ask func(context.Context, string) (store.Guarantee, error)) *Prober {
	return &Prober{clock: c, ask: ask, answers: make(map[string]answer)}
}

// Probe returns what the server at address guarantees. It blocks for at most a
// second. An error means that the server could not be asked, or does not let
// itself be used as a store.
func (p *Prober) Probe(ctx context.Context, address string) (v1alpha1.Guarantee, error) {
	if a, ok := p.remembered(address); ok {
		return a.guarantee, a.err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	guarantee, err := p.ask(ctx, address)
	a := answer{err: err, at: p.clock.Now()}
	if err == nil {
		a.guarantee = describe(guarantee)
	}
	p.remember(address, a)
	return a.guarantee, a.err
}

func (p *Prober) remembered(address string) (answer, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok := p.answers[address]
	return a, ok && p.fresh(a)
}

// remember also forgets answers that no longer stand: policies come and go.
func (p *Prober) remember(address string, a answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for old, b := range p.answers {
		if !p.fresh(b) {
			delete(p.answers, old)
		}
	}
	p.answers[address] = a
}

func (p *Prober) fresh(a answer) bool { return p.clock.Since(a.at) < freshFor }

// ask connects for one probe only: a connection kept for every server that a
// policy once named would never be given back.
func ask(ctx context.Context, address string) (store.Guarantee, error) {
	s := redis.Dial(address)
	guarantee, err := s.Probe(ctx)
	if closeErr := s.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("closing the connection: %w", closeErr)
	}
	return guarantee, err
}

// describe puts a store's guarantee into the words of the API, which has a reason
// for every grade.
func describe(g store.Guarantee) v1alpha1.Guarantee {
	return v1alpha1.Guarantee{Grade: v1alpha1.GuaranteeGrade(g.Grade), Reason: cmp.Or(g.Reason, hardReason)}
}
