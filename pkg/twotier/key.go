package twotier

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weir-dev/weir/pkg/sizing"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// A Key is what a process knows of one counter, or of one tenant's part of it.
type Key struct {
	lease atomic.Pointer[lease] // never nil; written with mu held

	mu          sync.Mutex   // guards the rest; taken before the table's
	inflight    *inflight    // nil while nobody waits and nothing is asked
	rare        *rareState   // what few keys have; nil when it is all zero
	sizer       sizing.Sizer // learns the size of leases
	demand      int64        // cost served since the open windows began, held credits included
	fingerprint uint32       // of the lease, when it was last looked at for idleness
	unchanged   uint8        // how often in a row that found nothing new
	// evicted says that the key is no longer in the table: decide on the one that is.
	evicted bool
	// tenanted says that the name holds a tenant.
	tenanted bool
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

// rareState holds what most keys never need.
type rareState struct {
	back         account.Grant       // of the balance
	local        *account.LocalShare // nil when nothing was admitted without the store; none with a tenant
	localBreaker *Breaker            // in front of the store that was unavailable for local
	debt         int64               // used beyond what was charged
	paid         account.Grant       // of the debt, not yet reported by a decision
}

func newKey(l *Limiter, name string, tenanted bool) *Key {
	k := &Key{tenanted: tenanted}
	k.lease.Store(&lease{key: k, name: name, deadline: account.Past, info: l.settings.Load().blank})
	return k
}

// limiter returns the limiter that the key belongs to.
func (k *Key) limiter() *Limiter { return k.lease.Load().info.limiter }

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

// publish makes e the key's lease; mu is held. When the key was evicted, its
// name may belong to another key by now.
func (k *Key) publish(e *lease) {
	k.lease.Store(e)
	if !k.evicted {
		e.info.limiter.keys.update(e)
	}
}

// takeAccount takes all credits from the key and returns all it knows;
// mu is held. Put it back by setAccount, or the credits are lost.
func (k *Key) takeAccount() account.State {
	e := k.lease.Load()
	return k.accountOf(e, e.drain(), e.refused.Swap(0))
}

// restoreAccount undoes what takeAccount took from the lease, which is still the key's; mu is
// held.
func (k *Key) restoreAccount(a account.State) {
	e := k.lease.Load()
	e.credits.Add(a.Front.Credits)
	e.refused.Add(a.Refused)
}

// peekAccount is takeAccount without taking anything.
func (k *Key) peekAccount() account.State {
	e := k.lease.Load()
	return k.accountOf(e, e.credits.Load(), 0)
}

func (k *Key) accountOf(e *lease, credits, refused int64) account.State {
	a := account.State{Answer: e.info.answer(e.remaining), Sizer: k.sizer, Demand: k.demand, Refused: refused}
	a.Front = account.Grant{Credits: credits, Deadline: e.deadline, Carried: e.info.carried, Charge: e.info.charge()}
	if k.rare != nil {
		a.Back, a.Debt, a.Paid = k.rare.back, k.rare.debt, k.rare.paid
	}
	return a
}

// setAccount makes a the key's account under the settings; mu is held.
func (k *Key) setAccount(s *settings, a account.State, now int64) {
	k.publishAccount(k.newLease(s, a, now), a)
}

// publishAccount publishes the lease of an account; mu is held.
func (k *Key) publishAccount(e *lease, a account.State) {
	k.publish(e)
	if a.Front.Credits+a.Back.Credits > 0 {
		k.limiter().wakeScan()
	}
}

// newLease is setAccount without publishing the lease, which nobody else sees until it is published.
func (k *Key) newLease(s *settings, a account.State, now int64) *lease {
	old := k.lease.Load()
	next := &lease{
		deadline: a.Front.Deadline, remaining: a.Remaining, name: old.name, key: k,
		info: old.info.limiter.infoOf(s, &a, now),
	}
	next.credits.Store(a.Front.Credits)
	next.refused.Store(a.Refused)
	k.sizer, k.demand = a.Sizer, a.Demand
	k.setRare(a)
	return next
}

// setRare keeps what few accounts have; mu is held.
func (k *Key) setRare(a account.State) {
	if a.Back.Credits == 0 {
		a.Back = account.Grant{}
	}
	if k.rare == nil && a.Back.Credits == 0 && a.Debt == 0 && a.Paid.Credits == 0 {
		return
	}
	x := k.ensureRare()
	x.back, x.debt, x.paid = a.Back, a.Debt, a.Paid
	k.trimRare()
}

// ensureRare returns the rare state, to be changed; mu is held.
func (k *Key) ensureRare() *rareState {
	if k.rare == nil {
		k.rare = new(rareState)
	}
	return k.rare
}

// trimRare forgets the rare state when it is all zero; mu is held.
func (k *Key) trimRare() {
	if x := k.rare; x != nil && x.back.Credits == 0 && x.local == nil && x.debt == 0 && x.paid.Credits == 0 {
		k.rare = nil
	}
}

// clear takes the held credits away from the key, and whatever it knows of
// the store, and returns those that may be given back.
func (k *Key) clear(now int64) []account.Grant {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.clearLocked(now)
}

// clearLocked is clear with mu held.
func (k *Key) clearLocked(now int64) []account.Grant {
	s := k.limiter().settings.Load()
	a, back := k.takeAccount().Clear(now)
	open := s.Open()
	a.Balance, a.Answer = open.Balance, open.Answer
	k.setAccount(s, a, now)
	return back
}

// nameOf returns the name under which a value and a tenant are found. The length at
// its end separates them; the name of a value without a tenant is the value.
func nameOf(value, tenant string) string {
	if tenant == "" {
		return value
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
