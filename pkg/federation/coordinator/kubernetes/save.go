package kubernetes

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/weir-dev/weir/pkg/federation/ledger"
)

const (
	patience = 3 * time.Second        // for one call of the journal
	pause    = 250 * time.Millisecond // after a call that failed
)

// load reads the record and takes it over. The write makes this memory the one whose
// writes succeed, and its term one that no other has.
func (b *budget) load(p ledger.Params) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	b.counts.loads.Add(1)
	r, version, err := b.takeOver(ctx, p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.memory = newMemory(r, version)
	}
	b.ended(err)
}

// takeOver writes the record of a memory that begins now. A budget whose births are not
// known to have it was never kept anywhere, so nothing of the open window is forgotten.
// That it is kept now is entered before anything is granted.
func (b *budget) takeOver(ctx context.Context, p ledger.Params) (Record, string, error) {
	r, version, err := b.journal.Load(ctx, b.id)
	switch {
	case errors.Is(err, ErrNotFound):
		r, version = first(p, b.clock()), ""
		var known bool
		if known, err = b.births.Known(ctx, b.id, p.Window); !known {
			r.Since = 0
		}
	case !r.Kept():
		r.Since = b.clock() + 1 // as of the first record
		fallthrough
	default:
		r.Term++
	}
	r.Writer = rand.Text()
	if err != nil {
		return r, "", err
	}
	b.counts.writes.Add(1)
	if version, err = b.journal.Save(ctx, b.id, r, version); err == nil {
		err = b.births.Enter(ctx, b.id, p.Window)
	}
	return r, version, err
}

// saving returns a call that writes r. The units set aside count when the journal says
// that they are written, and are never taken back when it does not: a write whose
// answer was lost is found by the next one, which conflicts with it.
func (b *budget) saving(p ledger.Params, r Record) func() {
	version := b.memory.version
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		b.counts.writes.Add(1)
		version, err := b.journal.Save(ctx, b.id, r, version)
		overtaken := false
		if conflict := (*ConflictError)(nil); errors.As(err, &conflict) {
			r, version, overtaken, err = b.found(ctx, r, conflict)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		switch {
		case overtaken:
			b.memory = nil
			b.counts.conflicts.Add(1)
		case err == nil:
			b.memory.wrote(p, r, version)
		}
		b.ended(err)
	}
}

// found returns the record that a write conflicted with. It is this memory's own when the
// answer to an earlier write was lost; otherwise this memory is overtaken, and the error
// says so. When the record cannot be read, that is not known yet.
func (b *budget) found(ctx context.Context, own Record, conflict error) (r Record, version string, overtaken bool, err error) {
	b.counts.loads.Add(1)
	r, version, err = b.journal.Load(ctx, b.id)
	switch {
	case errors.Is(err, ErrNotFound), err == nil && r.Writer != own.Writer:
		return r, version, true, conflict
	}
	return r, version, false, err
}

// ended takes note of how a call of the journal ended, and lets those that waited go on.
func (b *budget) ended(err error) {
	if err != nil {
		b.failed, b.retry = err, time.Now().Add(pause)
	}
	b.called = time.Now()
	close(b.busy)
	b.busy = nil
}
