package coordinator

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
)

const (
	// promiseTime is how far ahead sidecars promise to begin no window by themselves, and
	// promiseInterval how often. One that hears nothing more of its leader is kept from its
	// share by that, and one that is not heard for the difference lacks it.
	promiseTime     = 5 * limiter.Second
	promiseInterval = 2 * time.Second
)

// asks reports whether sidecars of the namespace are asked to promise. The lock is held.
func (r *returns) asks(namespace string, now limiter.Instant) bool {
	return !r.first && (len(r.awaited[namespace]) > 0 || now <= r.promises.settled[namespace])
}

// asking is asks, now.
func (r *returns) asking(namespace string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.asks(namespace, r.clock())
}

// ask returns what sidecars of the namespace are asked for, nil for nothing: the same for all
// that are asked at once.
func (r *returns) ask(namespace string) *fleetpb.ToHolder {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock()
	if !r.asks(namespace, now) {
		return nil
	}
	until := now.Add(promiseTime)
	if n := len(r.promises.rounds); n > 0 && until.Sub(r.promises.rounds[n-1].until) < limiter.Micros(promiseInterval/time.Microsecond)/2 {
		until = r.promises.rounds[n-1].until
	} else {
		r.promises.rounds = append(r.promises.rounds, round{until, map[string]*holderPromise{}})
	}
	return &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Promise{
		Promise: &fleetpb.PromiseRequest{NowMicros: int64(now), UntilMicros: int64(until)},
	}}
}

// askPromises has sidecars promise until ctx is done.
func (t *term) askPromises(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) {
		for _, namespace := range t.sessions.namespaces() {
			if m := t.returns.ask(namespace); m != nil {
				for _, s := range t.sessions.in(namespace) {
					s.ask(m)
				}
			}
		}
	}, promiseInterval)
}

// ask makes the holder promise, if its version does.
func (s *session) ask(m *fleetpb.ToHolder) {
	if s.promises && m != nil {
		s.push(m)
	}
}

// promised enters what the holder promises: it is back.
func (t *term) promised(s *session, p *fleetpb.Promise) {
	if t.returns.promise(s.Identity, s.nonce, s.shares(), limiter.Instant(p.GetBegunMicros()), limiter.Instant(p.GetUntilMicros())) {
		t.arrived(s)
	}
}
