package simulate

import "github.com/weir-dev/weir/pkg/limiter"

// A server is a store: it applies commands by the time of day of its node.
type server struct {
	world  *world
	clock  clock
	state  limiter.State
	memory limiter.Memory
	down   bool
	// amnesiac makes the store forget without knowing, to see that it is noticed.
	amnesiac bool
}

// apply implements keeper.
func (s *server) apply(m message) (answer, bool) {
	if s.down {
		return answer{}, false
	}
	now, a := s.clock.micros(s.world.now), answer{begun: s.memory.Since}
	if m.look {
		a.Now = now
		return a, true
	}
	m.command.Memory = s.memory
	m.command.Memory.Since = s.world.rules.forgot(m.known, s.memory.Since)
	s.state, a.Result = m.params.Step(s.state, now, m.command)
	return a, true
}

// lose ends the store. It forgets what it granted, unless it keeps it.
func (s *server) lose(keeps bool) {
	s.down = true
	if !keeps {
		s.state = limiter.State{}
	}
}

// rise starts the store again. It knows nothing of windows that began while it was away,
// unless it kept what it knew.
func (s *server) rise(keeps bool) {
	s.down = false
	if !keeps && !s.amnesiac {
		s.memory.Since = s.clock.micros(s.world.now)
	}
}
