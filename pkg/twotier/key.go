package twotier

import (
	"context"
	"strings"
	"sync"

	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// A Key is what a process knows of one counter, or of one tenant's part of it.
type Key struct {
	accountCell // first, so that requests find the lease without an offset

	mu       sync.Mutex // guards the rest; taken before the table's
	inflight *inflight  // nil while nobody waits and nothing is asked
}

// inflight holds the state of requests that wait, and of calls to the store.
type inflight struct {
	requests int       // that have not left
	cost     int64     // of those that are not decided
	queue    queue     // of those that wait for calls
	call     *call     // the one outstanding store call, nil when there is none
	combiner *combiner // of requests that share calls, nil when no such call is in progress
	returned int64     // units that the store has got back meanwhile
}

func newKey(l *Limiter, name string, tenanted bool) *Key {
	k := &Key{accountCell: accountCell{tenanted: tenanted}}
	k.lease.Store(&lease{key: k, name: name, deadline: account.Past, info: l.settings.Load().blank})
	return k
}

// value returns what the store keeps the counter for.
func (k *Key) value() string {
	value, _ := split(k.lease.Load().name, k.tenanted)
	return value
}

// tenant returns whose part of the counter it is.
func (k *Key) tenant() string {
	_, tenant := split(k.lease.Load().name, k.tenanted)
	return tenant
}

func (k *Key) storeKey(cfg *settings) store.Key {
	key := store.Key{Scope: cfg.Scope}
	if value := k.value(); value != "" {
		key.Hash = store.HashValue(value)
	}
	return key
}

// Acquire decides a request; see Limiter.Acquire.
func (k *Key) Acquire(ctx context.Context, cost int64) (d Decision, err error) {
	e := k.lease.Load()
	if e.decide(e.info.limiter, cost, &d) {
		return d, nil
	}
	return k.miss(ctx, cost)
}

// nameOf returns the name under which a value and a tenant are found. The length at
// its end separates them; the name of a value without a tenant is the value. It is a copy,
// because a value may be a part of the head of a whole request, which it would keep.
func nameOf(value, tenant string) string {
	if tenant == "" {
		return strings.Clone(value)
	}
	n := len(tenant)
	return value + tenant + string([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
}

// split undoes nameOf.
func split(name string, tenanted bool) (value, tenant string) {
	if !tenanted {
		return name, ""
	}
	end := len(name) - tailSize
	b := name[end:]
	begin := end - int(uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24)
	return name[:begin], name[begin:end]
}

// tailSize is the size of what nameOf adds.
const tailSize = 4

// isNamed reports whether nameOf(value, tenant) is the name; tenant is not empty.
func isNamed(name, value, tenant string) bool {
	if len(name) != len(value)+len(tenant)+tailSize {
		return false
	}
	v, t := split(name, true)
	return v == value && t == tenant
}

// A use says what a key is good for, and so in which order keys make room for others.
type use uint8

const (
	useless  use = iota // nothing that it knows of the store matters any more
	spent               // it would have to ask the store before it admits again
	refusing            // it spares the store requests that would be refused
	needed              // it has credits, or is deciding, or admits on the local share
)

// use returns what the key is good for at the instant now; mu is held.
func (k *Key) use(now int64) use {
	if k.inflight != nil || k.hasLocalWindow(now) {
		return needed
	}
	var x rareState
	if k.rare != nil {
		x = *k.rare
	}
	e := k.lease.Load()
	switch {
	case e.held(now) > 0 || x.back.Held(now) > 0 || x.local != nil:
		return needed
	case now < e.info.Until || x.debt > 0 && now < e.deadline:
		return refusing
	case x.debt > 0 || now < e.deadline:
		return spent
	default:
		return useless
	}
}

// evict marks the key as gone if it is of no more use than most, and returns its use.
// The store remembers what a spent key forgets. A key that is locked is needed, and
// waiting for it here would turn the order of locks around.
func (k *Key) evict(now int64, most use) use {
	if !k.mu.TryLock() {
		return needed
	}
	defer k.mu.Unlock()
	is := k.use(now)
	if k.evicted = is <= most; k.evicted {
		k.release()
	}
	return is
}

// promote brings credits to the front that can pay for the cost, if those in front
// cannot: from behind, or from windows that are over; mu is held. It forgets credits
// behind that are dead.
func (k *Key) promote(cfg *settings, now, cost int64) {
	e := k.lease.Load()
	over := cfg.Expiry == CarryOver && now >= e.deadline && e.credits.Load() > 0
	behind := e.info.behind > 0 && e.held(now) < cost && (k.rare.back.Held(now) >= cost || now >= k.rare.back.Deadline)
	if !over && !behind {
		return
	}
	a := k.takeAccount()
	if over {
		a = a.CarryOver(now, cfg.MaxCarried(), k.limiter().openWindows(cfg, a.Front.Windows, now))
	}
	k.setAccount(e.info.settings, a.Promote(now, cost), now) // a refusal is still theirs
}

// trimInflight drops the inflight state when nothing uses it any more; mu is held.
func (k *Key) trimInflight() {
	if k.inflight.requests == 0 && k.inflight.call == nil && k.inflight.combiner == nil {
		k.inflight = nil
	}
}
