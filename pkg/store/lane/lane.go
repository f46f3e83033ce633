// Package lane lets calls to a store share round trips, as databases share the writes of a
// log (group commit). A call that comes when none is under way is sent at once, together with
// those of goroutines that are ready to run. Calls that come meanwhile wait for its answer and
// are then sent together. There is no timer: calls travel together because the store is busy,
// and a store that is idle is asked at once.
package lane

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// MaxFlights is how many round trips of a lane are under way at once.
	MaxFlights = 3
	// Patience is for how long a round trip is under way before another one begins beside
	// it: to a server that is far, or over a connection that hangs.
	Patience = 10 * time.Millisecond
	// MaxShared bounds the calls of one round trip, and so for how long a server
	// serves nobody else.
	MaxShared = 64
)

// ErrClosed is the error of a call that was not sent because the lane is closed.
var ErrClosed = errors.New("the store is closed")

// A Lane sends calls. All calls of a lane go to one server, so that a call that waits for
// one that hangs keeps none from the rest of a cluster.
type Lane[T any] struct {
	carry    func(context.Context, []T)
	patience time.Duration

	mu      sync.Mutex
	flights int           // under way; guarded by mu
	started time.Time     // the last of them; guarded by mu
	waiting []*waiting[T] // for the next; guarded by mu
	closed  bool          // guarded by mu
	running sync.WaitGroup

	idle sync.Pool // of *waiting[T]
}

// waiting is a call that was not sent yet.
type waiting[T any] struct {
	call T
	done chan struct{} // takes one when the call was carried with others, or never will be
	err  error         // why it never will be
}

// enter returns what waits for a call.
func (l *Lane[T]) enter(call T) *waiting[T] {
	w, ok := l.idle.Get().(*waiting[T])
	if !ok {
		w = &waiting[T]{done: make(chan struct{}, 1)}
	}
	w.call = call
	return w
}

// exit has what waited used again, which nobody else knows any more.
func (l *Lane[T]) exit(w *waiting[T]) (err error) {
	var none T
	err, w.call, w.err = w.err, none, nil
	l.idle.Put(w)
	return err
}

// New returns a lane. Carry makes one round trip for calls, at most MaxShared, and returns
// when each of them has its answer or its own error. A call that is alone
// has the context of its caller; several have one without a deadline, since theirs differ. Patience is for how
// long a round trip is under way before another one begins beside it.
func New[T any](patience time.Duration, carry func(ctx context.Context, calls []T)) *Lane[T] {
	return &Lane[T]{carry: carry, patience: patience}
}

// Send has a call carried, alone or with others. It blocks until that is done, at the
// latest until ctx is. The error is that of ctx, after which the call may still be
// under way, or ErrClosed.
func (l *Lane[T]) Send(ctx context.Context, call T) error {
	w := l.enter(call)
	if l.board(w) {
		runtime.Gosched() // a packet often brings several requests, whose calls come now
		if l.depart(w) {
			defer l.land()
			l.carry(ctx, []T{call})
			return l.exit(w)
		}
	}
	select {
	case <-w.done:
		return l.exit(w)
	case <-ctx.Done():
		l.leave(w) // and w is left to what may carry it
		return ctx.Err()
	}
}

// board lets a call wait, and reports whether it leads: then the round trip begins by depart.
func (l *Lane[T]) board(w *waiting[T]) (leads bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		w.refuse()
		return false
	}
	starts := l.flights == 0 || l.flights < MaxFlights && time.Since(l.started) >= l.patience
	leads = starts && len(l.waiting) == 0
	l.waiting = append(l.waiting, w)
	if !starts {
		return false
	}
	l.flights++
	l.started = time.Now()
	if !leads {
		l.send(l.share())
	}
	return leads
}

// depart begins the round trip of the call that leads and of those that came since. It
// reports whether none did: then its caller carries it.
func (l *Lane[T]) depart(w *waiting[T]) (alone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	share := l.share()
	if len(share) == 1 && share[0] == w {
		return true
	}
	if share != nil {
		l.send(share)
	}
	return false
}

func (w *waiting[T]) refuse() {
	w.err = ErrClosed
	w.done <- struct{}{}
}

// leave withdraws a call that was not sent yet.
func (l *Lane[T]) leave(w *waiting[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(o *waiting[T]) bool { return o == w })
}

// land ends a flight, or goes on with those that wait.
func (l *Lane[T]) land() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if share := l.share(); share != nil {
		l.send(share)
	}
}

// send sends calls, and those that wait after them; mu is held.
func (l *Lane[T]) send(share []*waiting[T]) {
	l.running.Go(func() {
		for ; share != nil; share = l.next() {
			calls := make([]T, len(share))
			for i, w := range share {
				calls[i] = w.call
			}
			l.carry(context.Background(), calls)
			for _, w := range share {
				w.done <- struct{}{}
			}
		}
	})
}

func (l *Lane[T]) next() []*waiting[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.share()
}

// share returns those that share the next round trip, or none and ends a flight; mu
// is held.
func (l *Lane[T]) share() []*waiting[T] {
	n := min(len(l.waiting), MaxShared)
	if n == 0 {
		l.flights--
		return nil
	}
	l.started = time.Now()
	share := slices.Clone(l.waiting[:n])
	l.waiting = slices.Delete(l.waiting, 0, n)
	return share
}

// Waiting returns how many calls wait to be sent.
func (l *Lane[T]) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// Beside runs f beside the calls, unless the lane is closed.
func (l *Lane[T]) Beside(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.running.Go(f)
	}
}

// Close fails the calls that wait, and those to come.
func (l *Lane[T]) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, w := range l.waiting {
		w.refuse()
	}
	l.waiting = nil
}

// Wait returns when nothing is under way that the lane runs. That is what several calls
// share, and what Beside runs; a call that travels alone is its caller's.
func (l *Lane[T]) Wait() { l.running.Wait() }
