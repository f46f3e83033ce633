package pools

import "sync"

// spared counts the requests in flight that were let through without a slot in mode
// Shadow. They go on when the mode is Enforce again.
type spared struct {
	mu        sync.Mutex
	now, peak int64
}

func (s *spared) add() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now++
	s.peak = max(s.peak, s.now)
}

func (s *spared) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
}

func (s *spared) inFlight() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// takePeak returns the most since it was called last.
func (s *spared) takePeak() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	peak := s.peak
	s.peak = s.now
	return peak
}
