package backend

import (
	"sync"

	"github.com/weir-dev/weir/pkg/store"
)

// A Handle is a way to what is open somewhere, and outlives it: when credentials change, what was opened with
// the new ones takes the place of the other, which is closed after its last call. The zero Handle leads to
// nothing. All methods may be called concurrently.
type Handle[T Callable] struct {
	// Name is where it leads, as users see it.
	Name string

	mu    sync.RWMutex
	on    T     // the zero value while there is none
	cause error // why there is none, or no newer one
}

// Callable is what embeds Calls.
type Callable interface {
	comparable
	Leave()
	enter()
}

// Calls are those of something open that are under way.
type Calls struct{ under sync.WaitGroup }

func (c *Calls) enter() { c.under.Add(1) }

// Leave ends a call.
func (c *Calls) Leave() { c.under.Done() }

// Await returns when no call is under way. No Handle may lead to it any more.
func (c *Calls) Await() { c.under.Wait() }

// Enter begins a call, and the caller ends it by Leave. The error is a *store.UnavailableError.
func (h *Handle[T]) Enter() (on T, err error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var none T
	if h.on == none {
		return none, &store.UnavailableError{Store: h.Name, Cause: h.cause}
	}
	h.on.enter()
	return h.on, nil
}

// Replace lets the handle lead to next, and returns what it led to. The zero value is nothing: then calls fail
// with the cause.
func (h *Handle[T]) Replace(next T, cause error) (before T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, h.on, h.cause = h.on, next, cause
	return before
}

// Fail sets why the handle leads to nothing, or to nothing newer, and reports whether that is news.
func (h *Handle[T]) Fail(cause error) (news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	news = h.cause == nil || h.cause.Error() != cause.Error()
	h.cause = cause
	return news
}

// Look returns what the handle leads to, which may be closed meanwhile, and the zero value if that is nothing.
func (h *Handle[T]) Look() T {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.on
}
