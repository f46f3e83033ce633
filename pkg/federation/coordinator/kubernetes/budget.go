package kubernetes

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// errOvertaken is the cause of a refusal to a holder that was served later, in this
// window, than this memory began.
var errOvertaken = errors.New("another controller took over the budget")

// errByKey is the cause of a refusal of units without a key in a window whose other units are
// granted by key: the budget had a key until it was created again.
var errByKey = errors.New("units of this window are granted by key")

// A budget is one budget in this process. At most one call of the journal is under
// way for it at a time; commands that need none do not wait.
type budget struct {
	id      string
	journal Journal
	births  Births
	clock   func() limiter.Instant
	counts  *counts

	mu     sync.Mutex // guards all below
	sealed bool
	memory *memory       // nil: the record has to be loaded
	busy   chan struct{} // closed when the call under way ends; nil for none
	failed error         // why the last call failed
	retry  time.Time     // before which no other is made
	called time.Time     // when the last call ended
}

// apply applies c once all that it needs is written down.
func (b *budget) apply(ctx context.Context, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	for {
		g, wait, err := b.attempt(p, c)
		if wait == nil {
			return g, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ledger.Grant{}, ctx.Err()
		}
	}
}

// attempt applies c, or returns what to wait for before it is tried again.
func (b *budget) attempt(p ledger.Params, c ledger.Command) (ledger.Grant, <-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sealed {
		return ledger.Grant{}, nil, ErrSealed
	}
	if b.memory == nil {
		return b.await(func() { b.load(p) })
	}
	m, now := b.memory, b.clock()
	if c.Op == ledger.Lease && m.byKey(int64(now)/int64(p.Window)) {
		return ledger.Grant{}, nil, errByKey
	}
	next, g := m.state.Step(p, now, m.knows(c))
	if c.Epoch.Index == g.Epoch.Index && c.Epoch.Term > m.saved.Term {
		return ledger.Grant{}, nil, errOvertaken
	}
	switch {
	case g.Reason == ledger.Unreserved:
		return b.await(b.saving(p, m.record(m.reserved(p, now, g.Epoch.Index, g.Reserve))))
	case m.promises(next):
		return b.await(b.saving(p, m.record(next)))
	}
	m.state = next
	if units, short := m.ahead(p); short && c.Op == ledger.Lease && g.Reason == ledger.Granted {
		_, _, _ = b.await(b.saving(p, m.record(m.reserved(p, m.state.Latest, m.state.Index, units)))) // a lease that needs it will return it
	}
	return g, nil, nil
}

// await returns when the call of the journal that is under way ends. When there is none
// it begins this one, unless the last has failed just now.
func (b *budget) await(call func()) (ledger.Grant, <-chan struct{}, error) {
	if b.busy == nil {
		if time.Now().Before(b.retry) {
			return ledger.Grant{}, nil, b.failed
		}
		b.busy = make(chan struct{})
		go call()
	}
	return ledger.Grant{}, b.busy, nil
}

func (b *budget) observe() (ledger.State, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.memory == nil {
		return ledger.State{}, false
	}
	return b.memory.state, true
}

// seal ends the memory: it grants no more, and nothing stays set aside that it has not
// granted.
func (b *budget) seal(ctx context.Context) {
	b.mu.Lock()
	b.sealed = true
	busy := b.busy
	b.mu.Unlock()
	if busy != nil {
		select {
		case <-busy:
		case <-ctx.Done():
			return
		}
	}
	m := b.memory // nobody changes it any more
	if m == nil || m.state.Index != m.saved.Index {
		return
	}
	r := m.record(m.state)
	var keyed bool
	r.Keys, keyed = m.lastKeys()
	if m.used() >= m.saved.Reserved && !keyed {
		return
	}
	r.Reserved = m.used()
	b.counts.writes.Add(1)
	_, _ = b.journal.Save(ctx, b.id, r, m.version) // what is not given up is forfeited
}
