package clock

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Variable is the environment's variable that names a clock's file.
const Variable = "WALL_CLOCK"

// A Clock is the wall clock of one node: the machine's, plus an offset. Its methods may
// be called at the same time. It has to be closed.
type Clock struct {
	file string
	page []byte // shared with the processes: the offset in nanoseconds

	mu   sync.Mutex
	eras []Era // in order; never empty

	stop chan struct{}
	done chan struct{}
}

// An Era is a time in which a clock ran evenly: at an instant t from From on it shows
// t + Offset + (t − From) · PPB / 10⁹.
type Era struct {
	From   time.Time
	Offset time.Duration
	PPB    int64 // how much faster than the machine's clock it runs, in parts per billion
}

// At returns what the clock shows at an instant of the era.
func (e Era) At(t time.Time) time.Time { return t.Add(e.offset(t)) }

func (e Era) offset(t time.Time) time.Duration {
	return e.Offset + time.Duration(math.Round(float64(t.Sub(e.From))*float64(e.PPB)/1e9))
}

// tick is how often the offset of a clock that drifts is brought up to date: at 200 ppm
// it is at most 4 µs behind.
const tick = 20 * time.Millisecond

// New returns a clock that is off by an offset, and keeps it in a file that processes of
// any user can read.
func New(file string, offset time.Duration, ppb int64) (*Clock, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping stays
	if err := f.Truncate(8); err != nil {
		return nil, err
	}
	page, err := syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", file, err)
	}
	c := &Clock{
		file: file, page: page, stop: make(chan struct{}), done: make(chan struct{}),
		eras: []Era{{From: time.Now(), Offset: offset, PPB: ppb}},
	}
	c.write(offset)
	go c.run()
	return c, nil
}

// Environment returns what a process that has the clock finds in its environment.
func (c *Clock) Environment() []string { return []string{Variable + "=" + c.file} }

// Step sets the clock forward, or back.
func (c *Clock) Step(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	last := c.eras[len(c.eras)-1]
	next := Era{From: now, Offset: last.offset(now) + by, PPB: last.PPB}
	c.write(next.Offset)
	c.eras = append(c.eras, next)
}

// Offset returns by how much the clock is off now.
func (c *Clock) Offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.eras[len(c.eras)-1].offset(time.Now())
}

// Eras returns all eras up to now, in order.
func (c *Clock) Eras() []Era {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.eras)
}

// Close leaves the clock as it is: processes that read it still may.
func (c *Clock) Close() {
	close(c.stop)
	<-c.done
}

func (c *Clock) run() {
	defer close(c.done)
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-ticks.C:
			c.mu.Lock()
			c.write(c.eras[len(c.eras)-1].offset(time.Now()))
			c.mu.Unlock()
		}
	}
}

// write stores the offset at once: it is one aligned word.
func (c *Clock) write(offset time.Duration) {
	var word [8]byte
	binary.NativeEndian.PutUint64(word[:], uint64(offset))
	store(c.page, word)
}
