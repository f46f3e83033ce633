package twotier

import (
	"sync"
	"time"
)

// An idling limiter looks at its keys twice in every ReturnIdleAfter, and gives
// back the credits of those it found unchanged twice in a row.
type idling struct {
	mu    sync.Mutex
	after time.Duration // guarded by mu; 0 while nobody looks
	stop  chan struct{} // guarded by mu: closed when nobody shall look any more
}

// follow makes the limiter look as often as its settings say.
func (i *idling) follow(l *Limiter) {
	cfg := l.settings.Load()
	after := cfg.ReturnIdleAfter
	if cfg.Mode != Leased || cfg.Draining || after < 0 {
		after = 0
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if after == i.after {
		return
	}
	if i.after > 0 {
		close(i.stop)
	}
	i.after = after
	if after > 0 {
		stop := make(chan struct{})
		i.stop = stop
		l.start(func() { l.watchIdle(after/2, stop) })
	}
}

// watchIdle looks at the keys every interval until it is stopped or the limiter
// closes.
func (l *Limiter) watchIdle(interval time.Duration, stop <-chan struct{}) {
	tick := time.NewTicker(max(interval, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-l.closing:
			return
		case <-tick.C:
			l.returnIdle()
		}
	}
}

// returnIdle gives back what idle keys hold, several keys' at a time.
func (l *Limiter) returnIdle() {
	var all []handful
	now, gate := l.clock.now(), l.settings.Load().gate
	l.eachKey(func(k *Key) {
		for _, h := range k.idle(now) {
			all = append(all, handful{k, h})
		}
	})
	l.sendAllBack(l.ctx, gate, all)
}

// idle takes the credits away from the key if it found them unchanged twice in a
// row, and returns those that are still charged to something.
func (k *Key) idle(now int64) []Holding {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.lease.Load()
	credits := e.credits.Load()
	if credits == 0 && k.extra == nil || k.busy != nil {
		return nil
	}
	mark := uint32(credits) ^ uint32(e.deadline>>16) //nolint:gosec // a mark that changes with the lease
	if mark != k.mark {
		k.mark, k.still = mark, 0
		return nil
	}
	if k.still++; k.still < 2 {
		return nil
	}
	k.still = 0
	return k.giveUp(e, now)
}

// giveUp takes all credits away and keeps what is known of the store; mu is held.
func (k *Key) giveUp(e *lease, now int64) []Holding {
	h := k.hand()
	left := Hand{Front: Holding{Deadline: e.deadline, Charge: h.Front.Charge}}
	k.hold(left, e.terms, e.remaining+h.Front.Held(now))
	return h.returnable(now)
}
