package http1

import (
	"container/list"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/proxy/socket"
)

// A waiting keeps connections that are idle. They wait in an epoll set, and need neither a goroutine
// nor a buffer. One goroutine waits for the set.
type waiting struct {
	mu     sync.Mutex
	set    *os.File // nil before the first
	raw    syscall.RawConn
	closed bool
	last   uint64                   // number of a connection
	parked map[uint64]*list.Element // of conns, by their numbers
	order  list.List                // of parkeds, by when they end
	late   *time.Timer
}

// A parked is a connection in the set.
type parked struct {
	conn   *conn
	number uint64
	until  time.Time
}

// park has the connection, which is idle, wait without its goroutine. It returns false where that is
// not possible.
func (c *conn) park() bool {
	raw := socket.RawOf(c.Conn)
	if raw == nil {
		return false
	}
	c.release()
	c.memory.Park(membudget.ParkedBytes)
	if c.server.waiting.add(c, raw) {
		return true
	}
	c.prepare()
	_ = c.memory.Unpark(membudget.ParkedBytes) // without it the connection is counted as one that is parked
	return false
}

// add adds a connection. Another goroutine may go on with it before this returns.
func (w *waiting) add(c *conn, raw syscall.RawConn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || !w.open() {
		return false
	}
	w.last++
	p := &parked{conn: c, number: w.last, until: c.since.Add(c.server.idle)}
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLONESHOT, Fd: int32(p.number), Pad: int32(p.number >> 32)}
	var err error
	failed := w.raw.Control(func(set uintptr) {
		failed := raw.Control(func(fd uintptr) {
			if err = unix.EpollCtl(int(set), unix.EPOLL_CTL_ADD, int(fd), &event); errors.Is(err, unix.EEXIST) {
				err = unix.EpollCtl(int(set), unix.EPOLL_CTL_MOD, int(fd), &event)
			}
		})
		err = errors.Join(err, failed)
	})
	if failed != nil || err != nil {
		return false
	}
	w.parked[p.number] = w.order.PushBack(p)
	if w.order.Len() == 1 {
		w.late = time.AfterFunc(time.Until(p.until), w.expire)
	}
	c.place.Store(p.number)
	return true
}

// open makes the set.
func (w *waiting) open() bool {
	if w.set != nil {
		return true
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return false
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that the runtime waits for it
		_ = unix.Close(fd)
		return false
	}
	set := os.NewFile(uintptr(fd), "epoll")
	raw, err := set.SyscallConn()
	if err != nil {
		_ = set.Close()
		return false
	}
	w.set, w.raw, w.parked = set, raw, map[uint64]*list.Element{}
	go w.run(raw)
	return true
}

// run has connections served over which something has come, until the set is closed.
func (w *waiting) run(raw syscall.RawConn) {
	events := make([]unix.EpollEvent, 64)
	_ = raw.Read(func(set uintptr) bool {
		for {
			n, err := unix.EpollWait(int(set), events, 0)
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case n <= 0:
				return err != nil
			}
			for _, e := range events[:n] {
				if c := w.take(uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32); c != nil {
					go c.resume()
				}
			}
		}
	})
}

// take takes a connection out of the set; nil where it is not there any more.
func (w *waiting) take(number uint64) *conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	e, ok := w.parked[number]
	if !ok {
		return nil
	}
	delete(w.parked, number)
	p := w.order.Remove(e).(*parked) //nolint:forcetypeassert // nothing else is in there
	p.conn.place.Store(0)
	return p.conn
}

// remove reports whether a connection was in the set, which it is no longer.
func (w *waiting) remove(c *conn) bool {
	number := c.place.Load()
	return number != 0 && w.take(number) != nil
}

// expire closes connections that have been idle for too long.
func (w *waiting) expire() {
	for {
		w.mu.Lock()
		front := w.order.Front()
		if front == nil {
			w.mu.Unlock()
			return
		}
		p := front.Value.(*parked) //nolint:forcetypeassert // nothing else is in there
		if left := time.Until(p.until); left > 0 {
			w.late.Reset(left)
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		if w.take(p.number) != nil {
			p.conn.end()
		}
	}
}

// close closes the set, which is empty.
func (w *waiting) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.set != nil {
		_ = w.set.Close()
	}
	if w.late != nil {
		w.late.Stop()
	}
}
