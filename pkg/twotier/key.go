package twotier

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weir-dev/weir/pkg/sizing"
	"github.com/weir-dev/weir/pkg/store"
)

// A Key is what a process knows of one counter, or of one tenant's part of it.
type Key struct {
	lease atomic.Pointer[lease] // never nil; written with mu held

	mu     sync.Mutex   // guards the rest; taken before the table's
	busy   *busy        // nil while nobody waits and nothing is asked
	extra  *extra       // what few keys have; nil when it is all zero
	sizer  sizing.Sizer // learns the size of leases
	demand int64        // cost served since the open windows began, credits in hand included
	mark   uint32       // of the lease, when it was last looked at for idleness
	still  uint8        // how often in a row that found nothing new
	// evicted says that the key is no longer in the table: decide on the one that is.
	evicted bool
	// tenanted says that the name holds a tenant.
	tenanted bool
}

// busy is what a key is about.
type busy struct {
	requests int   // that have not left
	cost     int64 // of those that are not decided
	queue    queue // of those that wait for calls
	call     *call // the one outstanding store call, nil when there is none
	line     *line // of requests that share calls, nil when no such call is under way
	returned int64 // units that the store has got back meanwhile
}

// extra is what a key has at times.
type extra struct {
	back Holding // of the hand
	own  *own    // nil when nothing was admitted without the store; none with a tenant
	of   *Gate   // before the store that own was admitted without
	debt int64   // used beyond what was charged
	paid Holding // of the debt, not yet reported by a decision
}

func newKey(l *Limiter, name string, tenanted bool) *Key {
	k := &Key{tenanted: tenanted}
	k.lease.Store(&lease{key: k, name: name, deadline: past, terms: l.settings.Load().blank})
	return k
}

// limiter returns the limiter that the key belongs to.
func (k *Key) limiter() *Limiter { return k.lease.Load().terms.limiter }

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
	if e.decide(e.terms.limiter, cost, &d) {
		return d, nil
	}
	return k.miss(ctx, cost)
}

// publish makes e the key's lease; mu is held. When the key was evicted, its
// name may belong to another key by now.
func (k *Key) publish(e *lease) {
	k.lease.Store(e)
	if !k.evicted {
		e.terms.limiter.keys.update(e)
	}
}

// account takes everything that is in hand from the key and returns all it knows;
// mu is held. Put it back by keep, or the credits are lost.
func (k *Key) account() Account {
	e := k.lease.Load()
	return k.accountOf(e, e.drain(), e.refused.Swap(0))
}

// putBack undoes what account took from the lease, which is still the key's; mu is
// held.
func (k *Key) putBack(a Account) {
	e := k.lease.Load()
	e.credits.Add(a.Front.Credits)
	e.refused.Add(a.refused)
}

// look is account without taking anything.
func (k *Key) look() Account {
	e := k.lease.Load()
	return k.accountOf(e, e.credits.Load(), 0)
}

func (k *Key) accountOf(e *lease, credits, refused int64) Account {
	a := Account{Answer: e.terms.answer(e.remaining), sizer: k.sizer, demand: k.demand, refused: refused}
	a.Front = Holding{Credits: credits, Deadline: e.deadline, Carried: e.terms.carried, Charge: e.terms.charge()}
	if k.extra != nil {
		a.Back, a.Debt, a.Paid = k.extra.back, k.extra.debt, k.extra.paid
	}
	return a
}

// keep makes a the key's account under the settings; mu is held.
func (k *Key) keep(s *settings, a Account, now int64) {
	k.show(k.hold(s, a, now), a)
}

// show publishes the lease of an account; mu is held.
func (k *Key) show(e *lease, a Account) {
	k.publish(e)
	if a.Front.Credits+a.Back.Credits > 0 {
		k.limiter().look()
	}
}

// hold is keep but for the lease, which nobody else sees until it is published.
func (k *Key) hold(s *settings, a Account, now int64) *lease {
	old := k.lease.Load()
	next := &lease{
		deadline: a.Front.Deadline, remaining: a.Remaining, name: old.name, key: k,
		terms: old.terms.limiter.termsOf(s, &a, now),
	}
	next.credits.Store(a.Front.Credits)
	next.refused.Store(a.refused)
	k.sizer, k.demand = a.sizer, a.demand
	k.keepExtra(a)
	return next
}

// keepExtra keeps what few accounts have; mu is held.
func (k *Key) keepExtra(a Account) {
	if a.Back.Credits == 0 {
		a.Back = Holding{}
	}
	if k.extra == nil && a.Back.Credits == 0 && a.Debt == 0 && a.Paid.Credits == 0 {
		return
	}
	x := k.more()
	x.back, x.debt, x.paid = a.Back, a.Debt, a.Paid
	k.trim()
}

// more returns what few keys have, to be changed; mu is held.
func (k *Key) more() *extra {
	if k.extra == nil {
		k.extra = new(extra)
	}
	return k.extra
}

// trim forgets what few keys have when it is all zero; mu is held.
func (k *Key) trim() {
	if x := k.extra; x != nil && x.back.Credits == 0 && x.own == nil && x.debt == 0 && x.paid.Credits == 0 {
		k.extra = nil
	}
}

// surrender takes the credits in hand away from the key, and whatever it knows of
// the store, and returns those that may be given back.
func (k *Key) surrender(now int64) []Holding {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.blank(now)
}

// blank is surrender with mu held.
func (k *Key) blank(now int64) []Holding {
	s := k.limiter().settings.Load()
	a, back := k.account().GiveUp(now)
	open := s.Open()
	a.Hand, a.Answer = open.Hand, open.Answer
	k.keep(s, a, now)
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
