package jwks

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/pkg/store"
)

// Times between readings of one set.
const (
	refreshAfter = 5 * time.Minute
	// A reading that failed is tried again after retryFirst, then after twice as long each
	// time, at most after refreshAfter.
	retryFirst = 10 * time.Second
	// keptFor is how long a set is kept that nobody asks for.
	keptFor = 10 * time.Minute
)

// Bounds of a Cache.
const (
	maxSets    = 1000
	maxOfSpace = 32 // sets of one namespace, so that one cannot keep the readers from others
	readers    = 16 // readings at once
)

// ErrPending says that a set was not read yet.
var ErrPending = errors.New("they are being read")

// A Cache reads the sets that it is asked for, and remembers them. It is safe for concurrent
// use.
type Cache struct {
	clock clock.PassiveClock
	fetch func(ctx context.Context, url string) (string, error)
	due   chan name // sets to be read; each is in it once

	mu   sync.Mutex
	sets map[name]*set
}

// A name is that of a set. Namespaces share none, so that none learns what another reads.
type name struct{ namespace, url string }

// A set is what is known of one.
type set struct {
	keys    string // as they were read last; empty while they never were
	err     error  // of the last reading
	reading bool   // or about to be
	failed  int    // readings in a row
	next    time.Time
	asked   time.Time
}

// NewCache returns a Cache that reads by fetch, whose errors say what a *store.Failure says.
func NewCache(c clock.PassiveClock, fetch func(ctx context.Context, url string) (string, error)) *Cache {
	return &Cache{clock: c, fetch: fetch, due: make(chan name, maxSets), sets: make(map[name]*set)}
}

// Keys returns the public keys of the set that objects of a namespace name by its URL, as
// they were read last. It does not block: a set that is due is read soon. The error is that
// of the last reading, ErrPending before the first, and repeats nothing that a server sent.
// With it come the keys of the last reading that succeeded, if any did.
func (c *Cache) Keys(namespace, url string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, of := c.clock.Now(), name{namespace, url}
	s, known := c.sets[of]
	if !known {
		if err := c.makeRoom(now, namespace); err != nil {
			return "", err
		}
		s = &set{err: ErrPending, next: now}
		c.sets[of] = s
	}
	s.asked = now
	if !s.reading && !now.Before(s.next) {
		s.reading = true
		c.due <- of // there is room for all
	}
	return s.keys, s.err
}

// makeRoom forgets sets that nobody asks for. It fails when there is no room for another.
func (c *Cache) makeRoom(now time.Time, namespace string) error {
	ofSpace := 0
	for of, s := range c.sets {
		if !s.reading && now.Sub(s.asked) >= keptFor {
			delete(c.sets, of)
		} else if of.namespace == namespace {
			ofSpace++
		}
	}
	switch {
	case ofSpace >= maxOfSpace:
		return &store.Failure{Why: "the policies of the namespace name 32 other URLs, and no more are read: share some, or copy sets into Secrets"}
	case len(c.sets) >= maxSets:
		return &store.Failure{Why: "the policies of the cluster name 1000 other URLs, and no more are read: copy the set into a Secret"}
	}
	return nil
}

// Start reads sets until ctx is done.
func (c *Cache) Start(ctx context.Context) error {
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case of := <-c.due:
					keys, err := c.fetch(ctx, of.url)
					c.done(ctx, of, keys, err)
				}
			}
		})
	}
	all.Wait()
	return nil
}

// NeedLeaderElection reports that every replica may read sets. Only the leader asks for any.
func (*Cache) NeedLeaderElection() bool { return false }

// done notes what a reading found.
func (c *Cache) done(ctx context.Context, of name, keys string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, now := c.sets[of], c.clock.Now()
	before := s.err
	s.reading, s.err = false, store.Plain(err)
	if err == nil {
		s.keys, s.failed, s.next = keys, 0, now.Add(refreshAfter)
		return
	}
	s.next = now.Add(min(retryFirst<<min(s.failed, 10), refreshAfter))
	s.failed++
	if before == nil || before.Error() != s.err.Error() {
		log.FromContext(ctx).WithName("keys").Info("The keys of a provider of tokens cannot be read",
			"namespace", of.namespace, "url", of.url, "error", err.Error())
	}
}
