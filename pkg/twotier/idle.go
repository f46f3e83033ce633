package twotier

import (
	"context"
	"time"
)

// An idling limiter looks at its keys twice in every ReturnIdleAfter, and gives
// back the credits of those it found unchanged twice in a row.
type idling struct {
	after time.Duration // 0 while nobody looks
	stop  context.CancelFunc
}

// follow makes the limiter look as often as its settings say; they do not change
// meanwhile.
func (i *idling) follow(l *Limiter) {
	cfg := l.settings.Load()
	after := cfg.ReturnIdleAfter
	if cfg.Mode != Leased || cfg.Draining {
		after = 0
	}
	if after == i.after {
		return
	}
	if i.after > 0 {
		i.stop()
	}
	i.after = after
	if after > 0 {
		ctx, stop := context.WithCancel(l.ctx)
		i.stop = stop
		l.start(func() { l.watchIdle(ctx, after/2) })
	}
}

// watchIdle looks at the keys every interval until ctx is done.
func (l *Limiter) watchIdle(ctx context.Context, interval time.Duration) {
	for l.clock.sleep(ctx, interval) == nil {
		l.returnIdle()
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
	cfg, a := e.terms.settings, k.account()
	back := a.returnable(now)
	a.Remaining += a.Front.Held(now)
	a.Front.Credits, a.Back = 0, Holding{}
	k.keep(cfg, a, now)
	return back
}
