package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// A limit that is put in force for the first time has nothing that a store may have
// forgotten. Its birth is written down before any sidecar is sent the limit, and stays until
// the limit is gone and its longest window with it. So it is not taken for new again by a
// later leader, or after it was deleted and created again.

// birthShards is over how many objects the births are spread: each has room for 4,000.
const birthShards = 8

// birthPatience is how long a new limit is pending while its store cannot be asked which
// memory it is in. After that the limit is put in force without knowing, and a window that
// is open then grants nothing.
const birthPatience = 10 * time.Second

// birthSweep is how often limits are looked for that are gone.
const birthSweep = 10 * time.Minute

// A BirthStore keeps the births of limits, in shards, where they survive the process.
type BirthStore interface {
	// Load returns what a shard holds and its version, "" when there is none.
	Load(ctx context.Context, shard int) (data []byte, version string, err error)
	// Save replaces a shard that still has that version, or makes it when that is "", and
	// returns the new version.
	Save(ctx context.Context, shard int, data []byte, version string) (string, error)
}

// A birth is that of one limit on one store.
type birth struct {
	// Memories are those of its retention that were uninterrupted then; none when that
	// was not known.
	Memories []limiter.MemoryID `json:"memories,omitempty"`
	// Durable is its retention, and Since when an edit changed that, on the store's clock:
	// what was granted before may be kept elsewhere, or be forgotten. 0 when none did.
	Durable bool            `json:"durable,omitempty"`
	Since   limiter.Instant `json:"since,omitempty"`
	Longest limiter.Micros  `json:"longest"` // window
	// Gone is when the limit was first found to be gone, 0 while it is there.
	Gone limiter.Instant `json:"gone,omitempty"`
}

// A birthShard is what one object holds.
type birthShard struct {
	// Began is when the births were first written down, 0 when nobody had led before: a
	// limit may have been in force before that.
	Began  limiter.Instant   `json:"began,omitempty"`
	Limits map[string]*birth `json:"limits"`

	version string
}

// births are those of a term.
type births struct {
	store BirthStore
	clock func() limiter.Instant
	facts func(ctx context.Context, of policy.Store) (store.Facts, error)
	first bool // nobody led before
	// moved ends the records of a limit that the controller's store keeps durable counters
	// of, before they are kept in another way; nil when there are none.
	moved func(ctx context.Context, limit store.Scope) error
	// created is called with each limit that is put in force for the first time; nil for nobody.
	created func(limit store.Scope)

	mu     sync.Mutex
	loaded bool
	shards [birthShards]birthShard
	held   map[string]time.Time // since when new limits are pending, by name
}

// A heldError says that limits are pending, and why.
type heldError struct{ causes []error }

// Error names each limit and what it waits for.
func (e *heldError) Error() string { return errors.Join(e.causes...).Error() }

// fill sets in which memories the limits of the snapshot were born, and writes that down
// of those that are new. Those that are to wait for their store are pending
// in the snapshot, and a *heldError says so. After any other error nothing of the snapshot may be put in force.
func (b *births) fill(ctx context.Context, s *policy.Snapshot) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(ctx); err != nil {
		return fmt.Errorf("read when limits were first put in force: %w", err)
	}
	changed := map[int]bool{}
	known := map[policy.Store]storeAnswer{}
	filled := make([]policy.Policy, 0, len(s.Policies))
	var held heldError
	for _, p := range s.Policies {
		p.Limits = slices.Clone(p.Limits)
		waits, err := b.fillPolicy(ctx, s.Cluster, &p, known, changed)
		held.causes = append(held.causes, waits...)
		if err != nil {
			b.loaded = false
			return err
		}
		filled = append(filled, p)
	}
	for shard := range changed {
		if err := b.save(ctx, shard); err != nil {
			b.loaded = false // what was entered is not written down
			return fmt.Errorf("write down that limits are put in force: %w", err)
		}
	}
	s.Policies = filled
	if len(held.causes) > 0 {
		return &held
	}
	return nil
}

// fillPolicy returns what limits of the policy wait for.
func (b *births) fillPolicy(ctx context.Context, cluster string, p *policy.Policy, known map[policy.Store]storeAnswer, changed map[int]bool) (waits []error, err error) {
	for i := range p.Limits {
		l := &p.Limits[i]
		if l.Budget != nil {
			err = b.leave(ctx, cluster, p, l, changed)
		} else {
			err = b.fillLimit(ctx, cluster, p, l, known, changed)
		}
		var held *heldError
		switch {
		case errors.As(err, &held):
			l.Pending, waits = true, append(waits, held.causes...)
		case err != nil:
			return nil, err
		}
	}
	return waits, nil
}

func (b *births) fillLimit(ctx context.Context, cluster string, p *policy.Policy, l *policy.Limit, known map[policy.Store]storeAnswer, changed map[int]bool) error {
	scope := store.Scope{Cluster: cluster, Namespace: p.Namespace, Policy: p.Name, Limit: l.Name}
	name := birthName(scope, p.Store)
	shard := shardOf(name)
	window := l.Params(p).Longest().Window
	entry := b.shards[shard].Limits[name]
	switch {
	case entry == nil:
		if began := b.shards[shard].Began; b.created != nil && (began == 0 || b.clock() >= began.Add(window)) {
			b.created(scope)
		}
		var err error
		if entry, err = b.born(ctx, name, p.Store, l.Retention, window, known, b.shards[shard].Began); err != nil {
			return &heldError{[]error{fmt.Errorf("limit %q of policy %s/%s is new, and its store cannot be asked yet: %w", l.Name, p.Namespace, p.Name, err)}}
		}
		b.shards[shard].Limits[name], changed[shard] = entry, true
	case entry.Durable != l.Retention.Durable:
		if err := b.move(ctx, entry, scope, p.Store, known); err != nil {
			return fmt.Errorf("limit %q of policy %s/%s is to be kept in another way, but its store cannot be asked: %w", l.Name, p.Namespace, p.Name, err)
		}
		changed[shard] = true
	}
	if entry.Longest < window {
		entry.Longest, changed[shard] = window, true
	}
	l.Retention.Born, p.Since = entry.Memories, max(p.Since, entry.Since)
	return nil
}

// born returns the birth of a limit that has none. One that may have been in force before
// births were written down, in a window that may still be open, has no known memories. The
// error says why the limit is to wait for its store.
func (b *births) born(ctx context.Context, name string, of policy.Store, kept limiter.Retention, window limiter.Micros, known map[policy.Store]storeAnswer, began limiter.Instant) (*birth, error) {
	out := &birth{Durable: kept.Durable}
	if began > 0 && b.clock() < began.Add(window) {
		return out, nil
	}
	facts, err := b.ask(ctx, of, known)
	if err == nil {
		out.Memories = facts.Of(kept).Memories
		delete(b.held, name)
		return out, nil
	}
	since, waits := b.held[name]
	if !waits {
		since = time.Now()
		if b.held == nil {
			b.held = map[string]time.Time{}
		}
		b.held[name] = since
	}
	if time.Since(since) < birthPatience {
		return nil, err
	}
	delete(b.held, name)
	return out, nil
}

// retentionTime is how long sidecars may need to take over an edit of the retention.
const retentionTime = 5 * limiter.Second

// move has a limit be kept in the other way from now on. A store may keep either in a
// place of its own, so that neither knows what the other granted; the controller's has one.
func (b *births) move(ctx context.Context, entry *birth, scope store.Scope, of policy.Store, known map[policy.Store]storeAnswer) error {
	if of.Type == policy.ControllerStore {
		if err := b.close(ctx, entry, scope); err != nil {
			return err
		}
	} else {
		facts, err := b.ask(ctx, of, known)
		if err != nil {
			return err
		}
		entry.Memories, entry.Since = nil, facts.Now.Add(retentionTime)
	}
	entry.Durable = !entry.Durable
	return nil
}

// close ends the records of a limit whose counters were durable.
func (b *births) close(ctx context.Context, entry *birth, scope store.Scope) error {
	if !entry.Durable || b.moved == nil {
		return nil
	}
	return b.moved(ctx, scope)
}

// leave notes that a limit draws from a budget now: what is granted of it, the records of
// its durable counters do not say.
func (b *births) leave(ctx context.Context, cluster string, p *policy.Policy, l *policy.Limit, changed map[int]bool) error {
	scope := store.Scope{Cluster: cluster, Namespace: p.Namespace, Policy: p.Name, Limit: l.Name}
	name := birthName(scope, p.Store)
	shard := shardOf(name)
	entry := b.shards[shard].Limits[name]
	if entry == nil || !entry.Durable || p.Store.Type != policy.ControllerStore {
		return nil
	}
	if err := b.close(ctx, entry, scope); err != nil {
		return fmt.Errorf("limit %q of policy %s/%s is to draw from a budget, but that cannot be written down: %w", l.Name, p.Namespace, p.Name, err)
	}
	entry.Durable, changed[shard] = false, true
	return nil
}

// A storeAnswer is what a store said of itself, or why it did not.
type storeAnswer struct {
	facts store.Facts
	err   error
}

// ask asks a store once for one snapshot.
func (b *births) ask(ctx context.Context, of policy.Store, known map[policy.Store]storeAnswer) (store.Facts, error) {
	if a, ok := known[of]; ok {
		return a.facts, a.err
	}
	facts, err := b.facts(ctx, of)
	if err == nil && facts.Now == 0 {
		err = errors.New("it does not say what its clock shows")
	}
	known[of] = storeAnswer{facts, err}
	return facts, err
}

// load reads all shards, unless they are known, and makes those that do not exist. The
// lock is held.
func (b *births) load(ctx context.Context) error {
	if b.loaded {
		return nil
	}
	for i := range b.shards {
		data, version, err := b.store.Load(ctx, i)
		if err != nil {
			return err
		}
		shard := birthShard{version: version}
		if version != "" {
			if err := json.Unmarshal(data, &shard); err != nil {
				return fmt.Errorf("shard %d: %w", i, err)
			}
		}
		if shard.Limits == nil {
			shard.Limits = map[string]*birth{}
		}
		b.shards[i] = shard
		if version == "" {
			if !b.first {
				b.shards[i].Began = b.clock()
			}
			if err := b.save(ctx, i); err != nil {
				return err
			}
		}
	}
	b.loaded = true
	return nil
}

func (b *births) save(ctx context.Context, shard int) error {
	s := &b.shards[shard]
	data, err := json.Marshal(s)
	if err == nil {
		s.version, err = b.store.Save(ctx, shard, data, s.version)
	}
	return err
}

// sweep notes which limits are gone, and drops those that no window looks back on.
func (b *births) sweep(ctx context.Context, there map[store.Scope]struct{}) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(ctx); err != nil {
		return err
	}
	names := map[string]struct{}{}
	for scope := range there {
		names[scope.String()] = struct{}{}
	}
	for name := range b.held {
		scope, _, _ := strings.Cut(name, storeMark)
		if _, is := names[scope]; !is {
			delete(b.held, name)
		}
	}
	now := b.clock()
	var errs []error
	for i := range b.shards {
		changed := false
		for name, entry := range b.shards[i].Limits {
			scope, _, _ := strings.Cut(name, storeMark)
			_, is := names[scope]
			switch {
			case is && entry.Gone != 0:
				entry.Gone, changed = 0, true
			case !is && entry.Gone == 0:
				entry.Gone, changed = now, true
			case !is && now >= entry.Gone.Add(entry.Longest+limiter.Micros(2*birthSweep.Microseconds())):
				delete(b.shards[i].Limits, name)
				changed = true
			}
		}
		if changed {
			if err := b.save(ctx, i); err != nil {
				b.loaded = false
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// factsOf returns what a store says of itself.
func (t *term) factsOf(ctx context.Context, of policy.Store) (store.Facts, error) {
	if of.Type == policy.ControllerStore {
		return t.store.Facts(), nil
	}
	return t.Facts(ctx, of)
}

// sweepBirths sweeps until ctx is done.
func (t *term) sweepBirths(ctx context.Context) {
	if t.births == nil {
		return
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		there, err := t.Limits(ctx)
		if err == nil {
			err = t.births.sweep(ctx, there)
		}
		if err == nil && t.journals != nil {
			err = t.journals.sweep(ctx, there)
		}
		if err != nil && ctx.Err() == nil {
			t.log.Error(err, "limits that are gone are still known; trying again")
		}
	}, birthSweep)
}

// storeMark is between the name of a limit and that of a store: no name has it.
const storeMark = "@"

// birthName names a limit on a store, by what does not change while it is the same one.
func birthName(limit store.Scope, of policy.Store) string {
	return limit.String() + storeMark + strings.Join([]string{string(of.Type), of.Address, of.Sentinel, of.Database}, "|")
}

func shardOf(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return int(h.Sum32() % birthShards)
}
