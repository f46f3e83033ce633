package slots

// A peak is the most in flight in two stretches: before and since the last mark.
type peak struct {
	before, since int64
}

func (p *peak) see(n int64) { p.since = max(p.since, n) }

func (p *peak) most() int64 { return max(p.before, p.since) }

// mark begins another stretch, with n in flight.
func (p *peak) mark(n int64) { *p = peak{before: p.most(), since: n} }

func (p *peak) forget() { p.before = 0 }

// Peak returns the most in flight since the mark that Forget last went back to, or
// since the beginning.
func (t *Table) Peak() int64 { return t.peak.most() }

// Mark notes an instant for Forget. A report of the peak is marked when it is sent.
func (t *Table) Mark() { t.peak.mark(t.total) }

// Forget drops the peak before the last mark. It is called when the report that was
// marked arrived; while reports are lost the peak stays.
func (t *Table) Forget() { t.peak.forget() }
