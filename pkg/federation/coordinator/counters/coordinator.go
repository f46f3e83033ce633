package counters

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A Store applies a command to a counter atomically, by its own clock. The error is a
// *store.UnavailableError when it cannot be reached.
type Store interface {
	Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error)
}

// A Coordinator keeps budgets with a key in a store. It is safe for concurrent use.
type Coordinator struct {
	store Store
	began time.Time
	floor store.Floor
}

// New returns a coordinator of the store.
func New(s Store) *Coordinator { return &Coordinator{store: s, began: time.Now()} }

// ApplyKeys implements keyed.Coordinator. Commands for all keys are under way at once. The
// error is that of the store, or wraps a *ledger.InvalidError; one of the store is returned
// only where it decided on no key.
func (c *Coordinator) ApplyKeys(ctx context.Context, id string, p ledger.Params, r keys.Request) (keys.Reply, error) {
	if err := errors.Join(p.Validate(), r.Validate(), unsliced(p)); err != nil {
		return keys.Reply{}, fmt.Errorf("budget %s: %w", id, err)
	}
	decided := make([]decision, len(r.Asks))
	var all sync.WaitGroup
	for i, a := range r.Asks {
		all.Go(func() { decided[i] = c.decide(ctx, id, &p, a) })
	}
	all.Wait()
	return replyOf(decided, p.Limit)
}

// unsliced refuses slices: the store's counters do not have the units that members use without asking.
func unsliced(p ledger.Params) error {
	if p.Slices {
		return &ledger.InvalidError{Field: "slices", Why: "are set, but only a hub keeps them of a budget with a key: set action to FailClosed, or keep the budget in a hub"}
	}
	return nil
}

// A decision is the store's on one key.
type decision struct {
	limiter.Result
	err error
}

func (c *Coordinator) decide(ctx context.Context, id string, p *ledger.Params, a keys.KeyAsk) (d decision) {
	sent := c.instant()
	cmd := limiter.Command{Op: limiter.Take, Min: a.Min, Want: a.Want, Floor: c.floor.At(sent)}
	key := store.Key{Scope: scopeOf(id), Hash: a.Hash}
	d.Result, d.err = c.store.Apply(ctx, key, limiter.Params{Rates: []limiter.Rate{{Limit: p.LimitOf(a.Hash), Window: p.Window}}}, cmd)
	if d.err == nil {
		c.floor.Answered(cmd, d.Result, c.instant())
	}
	return d
}

// instant returns what a clock reads that does not go back.
func (c *Coordinator) instant() int64 { return int64(time.Since(c.began)) }

// scopeOf names the counters of a budget. No limit has a scope without a namespace.
func scopeOf(id string) store.Scope {
	return store.Scope{Policy: "budgets", Limit: store.HashValue(id)}
}

// replyOf puts decisions together. Those of the latest window count: what was granted of one
// before is forfeited, since it is over.
func replyOf(all []decision, limit int64) (keys.Reply, error) {
	reply := keys.Reply{Reason: ledger.Behind, RetryAfter: limiter.Second, Limit: limit}
	var failed error
	for i := range all {
		switch d := &all[i]; {
		case d.err != nil:
			failed = d.err
		case d.Reason == limiter.Amnesia:
			reply.Reason, reply.RetryAfter, reply.Now = ledger.Amnesia, d.RetryAfter, d.Now
		case d.decided():
			reply.Epoch = ledger.Epoch{Index: max(reply.Epoch.Index, d.Windows.Open[0].Index), Term: 1}
		}
	}
	switch {
	case reply.Epoch.Index > 0:
		reply.Reason, reply.RetryAfter = ledger.Granted, 0
		enter(&reply, all)
	case failed != nil && reply.Reason == ledger.Behind:
		return keys.Reply{}, failed
	}
	return reply, nil
}

// decided reports whether the store decided by what is left of a window.
func (d *decision) decided() bool {
	return d.err == nil && d.Windows.N == 1 && (d.Reason == limiter.Granted || d.Reason == limiter.Exhausted || d.Reason == limiter.TooLarge)
}

// enter enters the decisions of the reply's window.
func enter(reply *keys.Reply, all []decision) {
	reply.ExpiresIn = limiter.MaxWindow
	reply.Grants = make([]keys.Grant, len(all))
	for i := range all {
		d := &all[i]
		if !d.decided() || d.Windows.Open[0].Index != reply.Epoch.Index {
			reply.Grants[i].Lacks = true
			continue
		}
		reply.Grants[i] = keys.Grant{Units: d.Granted, Remaining: d.Remaining}
		reply.ExpiresIn, reply.Now = min(reply.ExpiresIn, d.Windows.Open[0].End().Sub(d.Now)), d.Now
	}
}
