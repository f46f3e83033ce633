package limiter

// A sliding sum counts each grant from when it was made until a window after the
// last instant at which it may be spent. Whatever the instants of spending are,
// in every interval of length Window at most Limit is then spent.

// maxLog is the number of entries beyond which a grant joins the newest entry. It
// then counts a little longer than it has to.
const maxLog = 1024

// spentBy returns the instant up to which a grant made at now is taken to be
// spendable: the end of its lifetime, or of the part of the window that is in.
func (p Params) spentBy(r Rate, now Instant) Instant {
	at := now.Add(p.Lifetime)
	if p.Algorithm == SlidingWindow {
		part := ceilDiv(int64(r.Window), p.Buckets)
		at = Instant(ceilDiv(int64(at), part) * part)
	}
	return at
}

// alive returns the entries that count at now.
func (m Meter) alive(now Instant) []Entry {
	for i, e := range m.Log {
		if now < e.At.Add(m.Window) {
			return m.Log[i:]
		}
	}
	return nil
}

func sum(log []Entry) int64 {
	var total int64
	for _, e := range log {
		total += e.Count
	}
	return total
}

// logEnds returns how long the newest entry counts.
func (m Meter) logEnds(now Instant) Micros {
	if len(m.Log) == 0 {
		return 0
	}
	return max(0, m.Log[len(m.Log)-1].At.Add(m.Window).Sub(now))
}

// slidingWait returns how long it takes until so many units are left.
func (m Meter) slidingWait(now Instant, amount int64) Micros {
	excess := sum(m.Log) + amount - m.Limit
	for _, e := range m.Log {
		if excess <= 0 {
			break
		}
		if excess -= e.Count; excess <= 0 {
			return max(0, e.At.Add(m.Window).Sub(now))
		}
	}
	return 0
}

// note counts a grant.
func (m *Meter) note(at Instant, amount int64) {
	last := len(m.Log) - 1
	log := make([]Entry, len(m.Log), len(m.Log)+1)
	copy(log, m.Log)
	switch {
	case last >= 0 && at <= log[last].At:
		log[last].Count += amount
	case last >= 0 && len(log) >= maxLog:
		log[last] = Entry{At: at, Count: log[last].Count + amount}
	default:
		log = append(log, Entry{At: at, Count: amount})
	}
	m.Log = log
}

// erase takes a grant off again, and reports whether it was there.
func (m *Meter) erase(at Instant, amount int64) bool {
	for i, e := range m.Log {
		if e.At != at || e.Count < amount {
			continue
		}
		log := make([]Entry, 0, len(m.Log))
		log = append(log, m.Log[:i]...)
		if e.Count > amount {
			log = append(log, Entry{At: at, Count: e.Count - amount})
		}
		m.Log = append(log, m.Log[i+1:]...)
		return true
	}
	return false
}
