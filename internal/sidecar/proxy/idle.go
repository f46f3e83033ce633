package proxy

import (
	"slices"
	"sync"
	"time"
)

// maxIdle bounds the idle connections to the app of each way there.
const maxIdle = 256

// idleLinks are the connections that wait for requests. The one that was used last is
// taken first, so that those that are not needed grow old. One timer looks after all.
type idleLinks struct {
	mu      sync.Mutex
	links   []*link // by how long they are idle, the longest first
	closed  bool
	sweeper *time.Timer // nil while none is idle
}

// take returns a connection that the app has neither closed nor spoken over meanwhile, or
// nil. Idle ones are not read from, so what came would be taken for the answer.
func (i *idleLinks) take() *link {
	for {
		l := i.pop()
		if l == nil || silent(l.conn) {
			return l
		}
		_ = l.conn.Close()
	}
}

func (i *idleLinks) pop() *link {
	i.mu.Lock()
	defer i.mu.Unlock()
	last := len(i.links) - 1
	if last < 0 {
		return nil
	}
	l := i.links[last]
	i.links[last], i.links = nil, i.links[:last]
	return l
}

// put keeps l, or reports that it is not wanted.
func (i *idleLinks) put(l *link) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed || len(i.links) >= maxIdle {
		return false
	}
	l.used, l.since = true, time.Now()
	i.links = append(i.links, l)
	if i.sweeper == nil {
		i.sweeper = time.AfterFunc(idleHTTP1, i.sweep)
	}
	return true
}

// sweep closes what was idle for too long. It comes back when the next is due, and not at
// once for each: to wake costs more than to keep a connection a little longer.
func (i *idleLinks) sweep() {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	old := 0
	for old < len(i.links) && now.Sub(i.links[old].since) >= idleHTTP1 {
		_ = i.links[old].conn.Close()
		old++
	}
	i.links = slices.Delete(i.links, 0, old)
	if len(i.links) == 0 {
		i.sweeper = nil
		return
	}
	i.sweeper.Reset(max(idleHTTP1/4, idleHTTP1-now.Sub(i.links[0].since)))
}

// close closes all, and what would be put.
func (i *idleLinks) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, l := range i.links {
		_ = l.conn.Close()
	}
	i.links, i.closed = nil, true
	if i.sweeper != nil {
		i.sweeper.Stop()
	}
}
