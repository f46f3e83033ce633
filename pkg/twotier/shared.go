package twotier

import "sync/atomic"

// shared saves copies of equal values: a run of them is one object.
type shared[T comparable] struct {
	latest atomic.Pointer[T]
}

// share returns a pointer to a value equal to v, which must not be changed.
func (s *shared[T]) share(v T) *T {
	if latest := s.latest.Load(); latest != nil && *latest == v {
		return latest
	}
	s.latest.Store(&v)
	return &v
}
