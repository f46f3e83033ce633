package limiter

// A sliding sum counts each grant from when it was made until a window after the
// last instant at which it may be spent. For any instants of spending, at most Limit
// is then spent in every interval of length Window.

// MaxLog is the limit up to which SlidingLog counts by exact instants, and the
// number of parts of a window in which it counts above. It bounds the entries of a
// log: a grant that finds that many joins the newest.
const MaxLog = 1024

// spentBy returns the instant up to which a grant whose lifetime ends at the given
// one is taken to be spendable: the end of the part of the window that is in.
func (p *Params) spentBy(r Rate, expires Instant) Instant {
	part := p.part(r)
	return Instant(ceilDiv(int64(expires), part) * part)
}

// part returns the length of time that a sliding sum does not distinguish.
func (p *Params) part(r Rate) int64 {
	switch {
	case p.Algorithm == SlidingWindow:
		return ceilDiv(int64(r.Window), p.Buckets)
	case r.Limit > MaxLog:
		return ceilDiv(int64(r.Window), MaxLog)
	default:
		return 1
	}
}

// alive returns the entries that count at now.
func (m *Meter) alive(now Instant) []Entry {
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

// logEnds returns the instant from which on no entry counts.
func (m *Meter) logEnds() Instant {
	if len(m.Log) == 0 {
		return 0
	}
	return m.Log[len(m.Log)-1].At.Add(m.Window)
}

// readSliding reads a meter whose entries all count.
func (p *Params) readSliding(m *Meter, now Instant, amount int64, memory *Memory) reading {
	used := sum(m.Log)
	r := reading{limit: m.Limit, left: max(0, m.Limit-used), resets: max(0, m.logEnds().Sub(now))}
	if present := memory.presentSince(m.Rate, now); present < m.Limit {
		r.forgotten, r.left = true, max(0, present-used)
		if r.left < amount { // others may have been back by then
			r.wait = m.WindowAt(now).End().Sub(now)
		}
	}
	for excess, i := used-m.Limit+amount, 0; excess > 0 && i < len(m.Log); i++ {
		excess -= m.Log[i].Count
		r.wait = m.Log[i].At.Add(m.Window).Sub(now)
	}
	if began := memory.since(m.Rate); began > 0 {
		if ends := p.spentBy(m.Rate, began.Add(p.Lifetime)).Add(m.Window).Sub(now); ends > 0 {
			r.forgotten, r.left, r.wait, r.resets = true, 0, max(r.wait, ends), max(r.resets, ends)
		}
	}
	return r
}

// note counts a grant.
func (m *Meter) note(at Instant, amount int64) {
	last := len(m.Log) - 1
	if amount = min(amount, MaxExact-sum(m.Log)); amount == 0 {
		return
	}
	log := make([]Entry, len(m.Log), len(m.Log)+1)
	copy(log, m.Log)
	switch {
	case last >= 0 && at <= log[last].At:
		log[last].Count += amount
	case last >= 0 && len(log) >= MaxLog:
		log[last] = Entry{At: at, Count: log[last].Count + amount}
	default:
		log = append(log, Entry{At: at, Count: amount})
	}
	m.Log = log
}

// erase takes units off that were granted at the instant at or later, and reports
// whether that many are left. It takes the oldest: whatever lifetime and parts the
// grant had, and whichever entry it joined, no entry that others were granted is
// then dropped before its time.
func (m *Meter) erase(at Instant, amount int64) bool {
	log := make([]Entry, 0, len(m.Log))
	for _, e := range m.Log {
		if e.At >= at {
			part := min(amount, e.Count)
			amount -= part
			e.Count -= part
		}
		if e.Count > 0 {
			log = append(log, e)
		}
	}
	if amount > 0 {
		return false
	}
	m.Log = log
	return true
}
