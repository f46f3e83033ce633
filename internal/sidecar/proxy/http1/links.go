package http1

import (
	"slices"
	"sync"
	"time"
)

const (
	// maxIdle bounds the idle connections to the app.
	maxIdle = 256
	// linkTime is how long a connection to the app may be idle. An app closes one without a word,
	// after 2 seconds or 5 as servers come, so ours are gone before. To open one costs little
	// within a pod, and those that are in use at least once a second stay.
	linkTime = time.Second
)

// A links keeps the connections to the app that wait for requests. The one that was used last is
// taken first, so that those that are not needed grow old. One timer looks after all.
type links struct {
	mu      sync.Mutex
	idle    []*link // by how long they are idle, the longest first
	closed  bool
	sweeper *time.Timer // nil while none is idle
}

// take returns the connection that was used last, or nil. Idle ones are not read from: the app may have
// closed it, or have spoken over it.
func (i *links) take() *link {
	i.mu.Lock()
	defer i.mu.Unlock()
	last := len(i.idle) - 1
	if last < 0 {
		return nil
	}
	l := i.idle[last]
	i.idle[last], i.idle = nil, i.idle[:last]
	return l
}

// put keeps l, or reports that it is not wanted.
func (i *links) put(l *link) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed || len(i.idle) >= maxIdle {
		return false
	}
	l.used, l.since = true, time.Now()
	i.idle = append(i.idle, l)
	if i.sweeper == nil {
		i.sweeper = time.AfterFunc(linkTime, i.sweep)
	}
	return true
}

// sweep closes what was idle for too long. It comes back when the next is due, and not at
// once for each: to wake costs more than to keep a connection a little longer.
func (i *links) sweep() {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	old := 0
	for old < len(i.idle) && now.Sub(i.idle[old].since) >= linkTime {
		_ = i.idle[old].conn.Close()
		old++
	}
	i.idle = slices.Delete(i.idle, 0, old)
	if len(i.idle) == 0 {
		i.sweeper = nil
		return
	}
	i.sweeper.Reset(max(linkTime/4, linkTime-now.Sub(i.idle[0].since)))
}

// close closes all, and what would be put.
func (i *links) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, l := range i.idle {
		_ = l.conn.Close()
	}
	i.idle, i.closed = nil, true
	if i.sweeper != nil {
		i.sweeper.Stop()
	}
}
