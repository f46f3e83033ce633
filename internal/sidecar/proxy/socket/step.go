package socket

// These are called when the socket may be ready, and return whether the call is over. Otherwise the
// goroutine waits until it may be again.

func (s *IO) receives(fd uintptr) (over bool) {
	s.triesReceive(fd)
	return !s.in.none
}

func (s *IO) receivesLent(fd uintptr) (over bool) {
	s.in.p = s.lender.Lend()
	if over = s.receives(fd); !over {
		s.in.p = nil
		s.lender.TakeBack()
	}
	return over
}

func (s *IO) triesReceive(fd uintptr) (over bool) {
	s.in.n, s.in.none, s.in.err = receive(fd, s.in.p)
	return true
}

func (s *IO) sends(fd uintptr) (over bool) {
	for s.out.n < len(s.out.p) {
		n, none, err := send(fd, s.out.p[s.out.n:])
		if s.out.n, s.out.err = s.out.n+n, err; none || err != nil {
			return !none
		}
	}
	return true
}

func (s *IO) triesSend(fd uintptr) (over bool) {
	s.out.n, _, s.out.err = send(fd, s.out.p)
	return true
}

// asks looks whether the connection is silent, writes, and only then waits. Bytes that come after the
// look make the socket ready, so the answer is not missed.
func (s *IO) asks(fd uintptr) (over bool) {
	if s.asked {
		return s.receives(fd)
	}
	if s.receives(fd) {
		return true
	}
	s.asked = true
	return !s.sends(fd) || s.out.err != nil
}
