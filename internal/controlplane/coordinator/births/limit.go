package births

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

const (
	// patience is how long a new limit is pending while its store cannot be asked which
	// memory it is in. After that the limit is put in force without knowing, and a window that
	// is open then grants nothing.
	patience = 10 * time.Second
	// retentionTime is how long sidecars may need to take over an edit of the retention.
	retentionTime = 5 * limiter.Second
)

// A filling is one call of Fill, in which each store is asked once. The lock is held.
type filling struct {
	*Births
	cluster string
	known   map[policy.Store]answer
	changed map[int]bool // shards to save
}

// An answer is what a store said of itself, or why it did not.
type answer struct {
	facts store.Facts
	err   error
}

// policy returns what limits of the policy wait for.
func (f *filling) policy(ctx context.Context, p *policy.Policy) (waits []error, err error) {
	for i := range p.Limits {
		l := &p.Limits[i]
		if l.Budget != nil {
			err = f.leave(ctx, p, l)
		} else {
			err = f.limit(ctx, p, l)
		}
		var held *HeldError
		switch {
		case errors.As(err, &held):
			l.Pending, waits = true, append(waits, held.causes...)
		case err != nil:
			return nil, err
		}
	}
	return waits, nil
}

func (f *filling) limit(ctx context.Context, p *policy.Policy, l *policy.Limit) error {
	scope, name := f.names(p, l)
	at := shardOf(name)
	in := &f.shards[at]
	window := l.Params(p).Longest().Window
	entry := in.Limits[name]
	switch {
	case entry == nil:
		old := in.Began > 0 && f.Clock() < in.Began.Add(window)
		if f.Created != nil && !old {
			f.Created(scope)
		}
		var err error
		if entry, err = f.born(ctx, name, p.Store, l.Retention, old); err != nil {
			return &HeldError{[]error{fmt.Errorf("limit %q of policy %s/%s is new, and its store cannot be asked yet: %w", l.Name, p.Namespace, p.Name, err)}}
		}
		in.Limits[name], f.changed[at] = entry, true
	case entry.Durable != l.Retention.Durable:
		if err := f.move(ctx, entry, scope, p.Store); err != nil {
			return fmt.Errorf("limit %q of policy %s/%s is to be kept in another way, but its store cannot be asked: %w", l.Name, p.Namespace, p.Name, err)
		}
		f.changed[at] = true
	}
	if entry.Longest < window {
		entry.Longest, f.changed[at] = window, true
	}
	l.Retention.Born, p.Since = entry.Memories, max(p.Since, entry.Since)
	return nil
}

// born returns the birth of a limit that has none. An old one, which may have been in force
// before births were written down, in a window that may still be open, has no known memories.
// The error says why the limit is to wait for its store.
func (f *filling) born(ctx context.Context, name string, of policy.Store, kept limiter.Retention, old bool) (*birth, error) {
	out := &birth{Durable: kept.Durable}
	if old {
		return out, nil
	}
	facts, err := f.ask(ctx, of)
	if err == nil {
		out.Memories = facts.Of(kept).Memories
		delete(f.held, name)
		return out, nil
	}
	since, waits := f.held[name]
	if !waits {
		since = time.Now()
		f.held[name] = since
	}
	if time.Since(since) < patience {
		return nil, err
	}
	delete(f.held, name)
	return out, nil
}

// move has a limit be kept in the other way from now on. A store may keep either in a
// place of its own, so that neither knows what the other granted; the controller's has one.
func (f *filling) move(ctx context.Context, entry *birth, scope store.Scope, of policy.Store) error {
	if of.Type == policy.ControllerStore {
		if err := f.close(ctx, entry, scope); err != nil {
			return err
		}
	} else {
		facts, err := f.ask(ctx, of)
		if err != nil {
			return err
		}
		entry.Memories, entry.Since = nil, facts.Now.Add(retentionTime)
	}
	entry.Durable = !entry.Durable
	return nil
}

// leave notes that a limit draws from a budget now: what is granted of it, the records of
// its durable counters do not say.
func (f *filling) leave(ctx context.Context, p *policy.Policy, l *policy.Limit) error {
	scope, name := f.names(p, l)
	at := shardOf(name)
	entry := f.shards[at].Limits[name]
	if entry == nil || !entry.Durable || p.Store.Type != policy.ControllerStore {
		return nil
	}
	if err := f.close(ctx, entry, scope); err != nil {
		return fmt.Errorf("limit %q of policy %s/%s is to draw from a budget, but that cannot be written down: %w", l.Name, p.Namespace, p.Name, err)
	}
	entry.Durable, f.changed[at] = false, true
	return nil
}

// close ends the records of a limit whose counters were durable.
func (f *filling) close(ctx context.Context, entry *birth, scope store.Scope) error {
	if !entry.Durable || f.Moved == nil {
		return nil
	}
	return f.Moved(ctx, scope)
}

func (f *filling) ask(ctx context.Context, of policy.Store) (store.Facts, error) {
	if a, ok := f.known[of]; ok {
		return a.facts, a.err
	}
	facts, err := f.Facts(ctx, of)
	if err == nil && facts.Now == 0 {
		err = errors.New("it does not say what its clock shows")
	}
	f.known[of] = answer{facts, err}
	return facts, err
}

// storeMark is between the name of a limit and that of a store: no name has it.
const storeMark = "@"

// names returns the scope of a limit and the name of its birth, which names the store, too,
// by what does not change while it is the same one.
func (f *filling) names(p *policy.Policy, l *policy.Limit) (store.Scope, string) {
	limit, of := store.Scope{Cluster: f.cluster, Namespace: p.Namespace, Policy: p.Name, Limit: l.Name}, p.Store
	return limit, limit.String() + storeMark + strings.Join([]string{string(of.Type), of.Address, of.Sentinel, of.Database}, "|")
}
