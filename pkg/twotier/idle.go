package twotier

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/pkg/sizing"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// Without ReturnIdleAfter a key is idle when nobody asked for it in an eighth of its
// shortest window, which is not shorter than this.
const (
	idleFraction = 8
	minIdle      = 100 * time.Millisecond
)

// scanCostPerKey is what one look at a key costs of the time between two looks, at least: they
// take less than a hundredth of a processor, however many keys there are.
const scanCostPerKey = 20 * time.Microsecond

// idleAfter returns how long nobody asked for a key that is idle, 0 when none gives
// anything back.
func (s *settings) idleAfter() time.Duration {
	switch {
	case s.Mode != Leased || s.Draining:
		return 0
	case s.ReturnIdleAfter > 0:
		return s.ReturnIdleAfter
	case !s.Learn() || !s.Params.Algorithm.WindowCoupled():
		return 0
	}
	if after := time.Duration(account.Nanos(account.ShortestWindow(s.Params)) / idleFraction); after >= minIdle {
		return after
	}
	return 0
}

// significantDemand is how many units were expected when it is unusual that none was asked for: by
// chance alone that happens to a part of e^-4 (Poisson), or 2 %.
const significantDemand = 4

// returnsIdle reports whether an idle key that learned this gives back what it holds.
// Unless it was said when, that is where the store has little left of late, for elsewhere
// nobody misses it, and where a key is asked for so often that a pause means something:
// else it would be refilled again and again.
func (s *settings) returnsIdle(z sizing.Sizer) bool {
	return s.ReturnIdleAfter > 0 || account.Contended(z, significantDemand*idleFraction)
}

// An idleScan looks at the keys of a limiter twice in every after, and gives back the credits
// of those it found unchanged twice in a row. It pauses while no key holds any that it would give
// back: of many keys that are each asked for rarely none does.
type idleScan struct {
	after   time.Duration
	ctx     context.Context //nolint:containedctx // of the scan, which outlives calls
	stop    context.CancelFunc
	running atomic.Bool
}

// configureScan starts, stops or changes the scan as the settings say; they do not change
// meanwhile.
func (l *Limiter) configureScan() {
	old, after := l.idleScan.Load(), l.settings.Load().idleAfter()
	if old != nil {
		if old.after == after {
			return
		}
		old.stop()
	}
	if after == 0 {
		l.idleScan.Store(nil)
		return
	}
	w := &idleScan{after: after}
	w.ctx, w.stop = context.WithCancel(l.ctx)
	l.idleScan.Store(w)
	l.wakeScan()
}

// stopScan ends the scan; settings do not change meanwhile.
func (l *Limiter) stopScan() {
	if w := l.idleScan.Load(); w != nil {
		w.stop()
	}
}

// wakeScan resumes the scan, for a key may hold credits that it gives back once it is idle.
func (l *Limiter) wakeScan() {
	w := l.idleScan.Load()
	if w != nil && w.running.CompareAndSwap(false, true) {
		l.start(func() { l.scanLoop(w) })
	}
}

// scanLoop looks at the keys until the scan ends or none may give credits back.
func (l *Limiter) scanLoop(w *idleScan) {
	for l.clock.sleep(w.ctx, max(w.after/2, time.Duration(l.keys.size())*scanCostPerKey)) == nil {
		if l.returnIdle() {
			continue
		}
		w.running.Store(false)
		// A key that got credits before this was seen here or has begun another look.
		if !l.anyMayReturn() || !w.running.CompareAndSwap(false, true) {
			return
		}
	}
}

// anyMayReturn reports whether a key may give credits back once it is idle.
func (l *Limiter) anyMayReturn() (may bool) {
	now, cfg := l.clock.now(), l.settings.Load()
	l.eachKey(func(k *Key) { may = may || k.mayReturn(cfg, now) })
	return may
}

// returnIdle gives back what idle keys hold, several keys' at a time, and reports
// whether any key may have.
func (l *Limiter) returnIdle() (may bool) {
	var all []keyGrant
	now, cfg := l.clock.now(), l.settings.Load()
	l.eachKey(func(k *Key) {
		if !k.mayReturn(cfg, now) {
			return
		}
		may = true
		for _, h := range k.takeIdle(now) {
			all = append(all, keyGrant{k, h})
		}
	})
	l.sendReturns(l.ctx, cfg.breaker, all)
	return may
}

// mayReturn reports whether the key holds credits that are alive and that it gives back once it is
// idle.
func (k *Key) mayReturn(cfg *settings, now int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return cfg.returnsIdle(k.sizer) && (k.lease.Load().held(now) > 0 || k.rare != nil && k.rare.back.Held(now) > 0)
}

// takeIdle takes the credits away from the key if it found them unchanged twice in a
// row, and returns those that are still charged to something.
func (k *Key) takeIdle(now int64) []account.Grant {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.lease.Load()
	credits := e.credits.Load()
	if k.inflight != nil {
		return nil
	}
	mark := uint32(credits) ^ uint32(e.deadline>>16)
	if mark != k.fingerprint {
		k.fingerprint, k.unchanged = mark, 0
		return nil
	}
	if k.unchanged++; k.unchanged < 2 {
		return nil
	}
	k.unchanged = 0
	if !k.limiter().settings.Load().returnsIdle(k.sizer) {
		return nil
	}
	a := k.takeAccount()
	a.Remaining += a.Front.Held(now)
	a, back := a.Clear(now)
	k.setAccount(e.info.settings, a, now)
	return back
}
