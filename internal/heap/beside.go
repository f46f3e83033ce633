package heap

import (
	"math"
	"runtime/debug"
	"sync"
)

// besideGoal is which part of the goal the kernel may keep beside the heap before the goal is lower.
const besideGoal = 8

// A Goal is that of a heap, which is lower while the kernel keeps much in the same container. Its
// methods may be called concurrently.
type Goal struct {
	most int64 // bytes
	set  func(int64) int64

	mu  sync.Mutex
	now int64
}

// NewGoal returns the goal of this process, which is as debug.SetMemoryLimit has it. One without a
// limit has none at any time.
func NewGoal() *Goal { return newGoal(debug.SetMemoryLimit(-1), debug.SetMemoryLimit) }

func newGoal(most int64, set func(int64) int64) *Goal { return &Goal{most: most, now: most, set: set} }

// Beside says that the kernel keeps about that many bytes. The goal is lower by those beyond an
// eighth of it, and never below half of the first one. It changes in steps of a 32nd, since each stops
// the process for a moment.
func (g *Goal) Beside(bytes int64) {
	if g.most == math.MaxInt64 {
		return
	}
	goal := max(g.most/2, g.most-max(0, bytes-g.most/besideGoal))
	step := g.most / 32
	g.mu.Lock()
	defer g.mu.Unlock()
	if goal >= g.now+step || goal <= g.now-step {
		g.set(goal)
		g.now = goal
	}
}
