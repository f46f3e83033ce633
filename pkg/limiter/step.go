package limiter

// Step applies c to s at the instant now, by the parameters, which are valid by
// Validate. It panics on an Op it does not know.
//
//	state of the key                        Take                       Return
//	generation newer than the parameters'   0, StaleGeneration         0, StaleGeneration
//	an instant after now was served, or
//	is known to the holder                  0, ClockBehind             0, ClockBehind
//	Min above what is ever granted          0, TooLarge                —
//	the past that counts was forgotten      0, Amnesia                 0, Forfeited
//	fewer than Min left                     0, Exhausted               —
//	otherwise                               min(Want, left), Granted   Want, Granted; 0, Forfeited
//	                                                                   when it is too late
//
// Peek answers as Take does and changes nothing. Reset forgets what was granted.
//
// An edit never opens a second budget beside the first; see adopt. A port of Step
// follows its files in this order: calendar.go, sliding.go and bucket.go know one
// meter, adopt.go brings the meters to now, take.go and giveback.go read and charge
// them, fairness.go splits a window. Every number stays below 2^53 in between,
// quotients are of integers and rounded as floorDiv and ceilDiv say, or as / when
// they are not negative. State holds what has to be kept of a key, for KeepFor.
func (p Params) Step(s State, now Instant, c Command) (State, Result) {
	if p.Generation < s.Generation {
		return s, Result{Reason: StaleGeneration, Algorithm: s.Algorithm, Windows: s.Windows(now), Now: now}
	}
	if served := max(s.served(&c.Memory), c.Floor); now < served {
		return s, Result{
			Reason: ClockBehind, Algorithm: s.Algorithm, Windows: s.Windows(now), Now: now, RetryAfter: served.Sub(now),
		}
	}
	c.Memory.Since = max(c.Memory.Since, p.Since)
	next := s
	p.adopt(&next, now, &c.Memory)
	res := Result{Now: now, Algorithm: next.Algorithm}
	switch c.Op {
	case Take:
		p.take(&next, now, &c, &res)
	case Peek:
		after := next
		p.take(&after, now, &c, &res)
		p.describe(&next, now, &c, &res)
		return s, res
	case Return:
		p.giveBack(&next, now, &c, &res)
	case Reset:
		p.reset(&next, now, &c, &res)
	default:
		panic("limiter: unknown op")
	}
	return next, res
}

// reset forgets what was granted. Units that holders have in hand are still good.
func (p *Params) reset(s *State, now Instant, c *Command, res *Result) {
	*s = s.Reset(now)
	p.advance(s, now, &c.Memory)
	p.describe(s, now, c, res)
}
