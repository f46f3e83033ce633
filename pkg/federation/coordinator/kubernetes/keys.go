package kubernetes

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/store"
)

const (
	// keysPatience is how long asks wait for units to be set aside: less than callers wait for
	// an answer.
	keysPatience = 40 * time.Millisecond
	// Writes for keys follow each other after a part of the window, within these bounds.
	keysParts             = 64
	leastPause, mostPause = 20 * time.Millisecond, 250 * time.Millisecond
)

// ApplyKeys grants units of keys of the budget of that id: each value has the limit of p in
// every window. p.Block is at least 1. Asks wait while the record is loaded, and for a moment
// when they ask for more than is set aside; others of the same request are not held up by
// that beyond the moment. Grants are not taken back, whether or not the answer arrives. The
// error is that of Apply.
func (c *Coordinator) ApplyKeys(ctx context.Context, id string, p ledger.Params, r keys.Request) (keys.Reply, error) {
	if err := ctx.Err(); err != nil {
		return keys.Reply{}, unavailable(err)
	}
	if err := validateKeys(p, r); err != nil {
		return keys.Reply{}, fmt.Errorf("%s: budget %s: %w", name, id, err)
	}
	b, err := c.budget(id)
	if err != nil {
		return keys.Reply{}, unavailable(err)
	}
	reply, err := b.applyKeys(ctx, p, r)
	if err != nil {
		return keys.Reply{}, unavailable(err)
	}
	c.counts.leases.Add(1)
	return reply, nil
}

func validateKeys(p ledger.Params, r keys.Request) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if p.Block == 0 {
		return errNoBlock
	}
	return r.Validate()
}

// A deal is a request that is being answered.
type deal struct {
	reply keys.Reply
	begun bool  // the window of the reply is known
	rest  []int // asks that are not decided
}

// applyKeys decides all asks that can be in time. An error is returned only where nothing was
// granted.
func (b *budget) applyKeys(ctx context.Context, p ledger.Params, r keys.Request) (keys.Reply, error) {
	var d deal
	var patience <-chan time.Time // while the record is loaded
	for {
		wait, err := b.deal(p, r, &d)
		switch {
		case err != nil && len(d.rest) == len(d.reply.Grants):
			return keys.Reply{}, err
		case err != nil, wait == nil:
			return d.reply, nil
		case d.begun && patience == nil:
			late := time.NewTimer(keysPatience)
			defer late.Stop()
			patience = late.C
		}
		select {
		case <-wait:
		case <-patience:
			return d.reply, nil
		case <-ctx.Done():
			if !d.begun {
				return keys.Reply{}, ctx.Err()
			}
			return d.reply, nil
		}
	}
}

// deal decides the asks that can be now, or returns what to wait for before it is tried
// again.
func (b *budget) deal(p ledger.Params, r keys.Request, d *deal) (<-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sealed {
		return nil, ErrSealed
	}
	if b.memory == nil {
		if d.begun {
			return nil, errOvertaken
		}
		_, wait, err := b.await(func() { b.load(p) })
		return wait, err
	}
	m := b.memory
	next, w, reply := keys.Open(m.state, p, b.clock(), m.knows(ledger.Command{}).Memory, r.Member)
	m.state = next
	switch {
	case !d.begun:
		d.begin(reply, len(r.Asks))
	case d.reply.Epoch != reply.Epoch:
		return nil, nil // the rest is for another window
	}
	rest := d.rest
	d.rest = nil
	for _, i := range rest {
		if d.reply.Grants[i] = m.book.Take(w, r.Asks[i]); d.reply.Grants[i].Lacks {
			d.rest = append(d.rest, i)
		}
	}
	if len(rest) > 0 {
		d.reply.Room = m.book.Room()
	}
	if !m.book.Due() {
		return nil, nil
	}
	_, wait, err := b.await(b.savingKeys(p))
	if len(d.rest) == 0 {
		return nil, nil // what is set aside ahead of need is not waited for
	}
	return wait, err
}

// begin takes the window of the first attempt.
func (d *deal) begin(reply keys.Reply, asks int) {
	d.reply, d.begun = reply, true
	if reply.Reason != ledger.Granted {
		return
	}
	d.reply.Grants, d.rest = make([]keys.Grant, asks), make([]int, asks)
	for i := range d.rest {
		d.rest[i] = i
	}
}

// savingKeys returns a call that sets aside what keys want by the time of the write, a pause
// after the call before.
func (b *budget) savingKeys(p ledger.Params) func() {
	pause := min(max(time.Duration(p.Window)*time.Microsecond/keysParts, leastPause), mostPause)
	after := time.Until(b.called.Add(pause))
	return func() {
		if after > 0 {
			late := time.NewTimer(after)
			defer late.Stop()
			<-late.C
		}
		b.mu.Lock()
		m := b.memory // it stays while a call is under way
		r := m.record(m.state)
		aside := m.book.Next()
		r.Keys = &aside
		save := b.saving(p, r)
		b.mu.Unlock()
		save()
	}
}

// lastKeys returns the record of the keys once nothing is granted any more, and whether that
// gives up anything.
func (m *memory) lastKeys() (*keys.Aside, bool) {
	if m.saved.Keys == nil || m.saved.Keys.Index != m.state.Index {
		return m.saved.Keys, false
	}
	last := m.book.Last()
	return &last, true
}

// byKey reports whether units of the window are granted by key, so that no others are.
func (m *memory) byKey(index int64) bool {
	return m.saved.Keys != nil && m.saved.Keys.Index == index
}

// newBook begins the book of a memory with the record that it has taken over.
func newBook(r Record) *keys.Book {
	b := &keys.Book{Share: store.SharedHashOf}
	if r.Keys != nil {
		b.State = keys.Succeed(*r.Keys)
	}
	return b
}
