package twotier

import (
	"context"
	"sync/atomic"
	"time"
)

// Without ReturnIdleAfter a key is idle when nobody asked for it in an eighth of its
// shortest window, which is no shorter than this.
const (
	idleParts   = 8
	soonestIdle = 100 * time.Millisecond
)

// lookAtKey is what one look at a key costs of the time between two looks, at least: they
// take less than a hundredth of a processor, however many keys there are.
const lookAtKey = 20 * time.Microsecond

// idleAfter returns how long nobody asked for a key that is idle, 0 when none gives
// anything back.
func (s *settings) idleAfter() time.Duration {
	switch {
	case s.Mode != Leased || s.Draining:
		return 0
	case s.ReturnIdleAfter > 0:
		return s.ReturnIdleAfter
	case !s.learns() || !s.Params.Algorithm.WindowCoupled():
		return 0
	}
	if after := time.Duration(nanos(shortestOf(s.Params)) / idleParts); after >= soonestIdle {
		return after
	}
	return 0
}

// unusual is how many units were expected when it is unusual that none was asked for: by
// chance alone that happens to a part of e^-4 (Poisson), or 2 %.
const unusual = 4

// returnsIdle reports whether an idle key with the account gives back what it holds.
// Unless it was said when, that is where the store has little left of late, for elsewhere
// nobody misses it, and where a key is asked for so often that its rest means something:
// else it would be refilled again and again.
func (s *settings) returnsIdle(a Account) bool {
	return s.ReturnIdleAfter > 0 || a.sizer.Scarce() && a.sizer.Forecast() >= unusual*idleParts
}

// A watch looks at the keys of a limiter twice in every after, and gives back the credits
// of those it found unchanged twice in a row. It rests while no key holds any.
type watch struct {
	after   time.Duration
	ctx     context.Context //nolint:containedctx // of the watch, which outlives calls
	stop    context.CancelFunc
	looking atomic.Bool
}

// watchIdle makes the limiter watch its keys as its settings say; they do not change
// meanwhile.
func (l *Limiter) watchIdle() {
	old, after := l.watching.Load(), l.settings.Load().idleAfter()
	if old != nil {
		if old.after == after {
			return
		}
		old.stop()
	}
	if after == 0 {
		l.watching.Store(nil)
		return
	}
	w := &watch{after: after}
	w.ctx, w.stop = context.WithCancel(l.ctx)
	l.watching.Store(w)
	l.look()
}

// stopWatching ends the watch; settings do not change meanwhile.
func (l *Limiter) stopWatching() {
	if w := l.watching.Load(); w != nil {
		w.stop()
	}
}

// look ends the rest of the watch, for a key may hold credits.
func (l *Limiter) look() {
	w := l.watching.Load()
	if w != nil && w.looking.CompareAndSwap(false, true) {
		l.start(func() { l.lookAround(w) })
	}
}

// lookAround looks at the keys until the watch ends or none holds credits.
func (l *Limiter) lookAround(w *watch) {
	for l.clock.sleep(w.ctx, max(w.after/2, time.Duration(l.keys.size())*lookAtKey)) == nil {
		if l.returnIdle() {
			continue
		}
		w.looking.Store(false)
		// A key that got credits before this was seen here or has begun another look.
		if !l.holdsCredits() || !w.looking.CompareAndSwap(false, true) {
			return
		}
	}
}

// holdsCredits reports whether a key holds credits that are alive.
func (l *Limiter) holdsCredits() (holds bool) {
	now := l.clock.now()
	l.eachKey(func(k *Key) { holds = holds || k.holds(now) })
	return holds
}

// returnIdle gives back what idle keys hold, several keys' at a time, and reports
// whether any key held credits.
func (l *Limiter) returnIdle() (held bool) {
	var all []handful
	now, gate := l.clock.now(), l.settings.Load().gate
	l.eachKey(func(k *Key) {
		if !k.holds(now) {
			return
		}
		held = true
		for _, h := range k.idle(now) {
			all = append(all, handful{k, h})
		}
	})
	l.sendAllBack(l.ctx, gate, all)
	return held
}

// holds reports whether the key has credits in hand that are alive.
func (k *Key) holds(now int64) bool {
	if k.lease.Load().held(now) > 0 {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lease.Load().held(now) > 0 || k.extra != nil && k.extra.back.Held(now) > 0
}

// idle takes the credits away from the key if it found them unchanged twice in a
// row, and returns those that are still charged to something.
func (k *Key) idle(now int64) []Holding {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.lease.Load()
	credits := e.credits.Load()
	if k.busy != nil {
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
	if !k.limiter().settings.Load().returnsIdle(k.look()) {
		return nil
	}
	a := k.account()
	a.Remaining += a.Front.Held(now)
	a, back := a.GiveUp(now)
	k.keep(e.terms.settings, a, now)
	return back
}
