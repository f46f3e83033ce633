package simulate

import "github.com/weir-dev/weir/pkg/limiter"

// A server is the store: it applies commands by its own clock.
type server struct {
	clock  clock
	state  limiter.State
	memory limiter.Memory
	down   bool
	// amnesiac makes the store forget without knowing, to see that it is noticed.
	amnesiac bool
}

func newServer(c clock) *server { return &server{clock: c} }

// apply decides a command, or reports false when the store is not there.
func (s *server) apply(t instant, p limiter.Params, c limiter.Command) (limiter.Result, bool) {
	if s.down {
		return limiter.Result{}, false
	}
	c.Memory = s.memory
	var res limiter.Result
	s.state, res = p.Step(s.state, s.clock.micros(t), c)
	return res, true
}

// lose ends the store. What it granted is forgotten unless it keeps it.
func (s *server) lose(keeps bool) {
	s.down = true
	if !keeps {
		s.state = limiter.State{}
	}
}

// rise starts the store again. Of windows that began while it was away it knows
// nothing, unless it kept what it knew.
func (s *server) rise(t instant, keeps bool) {
	s.down = false
	if !keeps && !s.amnesiac {
		s.memory.Since = s.clock.micros(t)
	}
}
