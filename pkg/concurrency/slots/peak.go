package slots

// A peak is the most in flight in two stretches: before and since the last mark.
type peak struct {
	before, since int64
}

func (p *peak) see(n int64) { p.since = max(p.since, n) }

// Peak returns the most in flight since the mark that Forget last went back to, or
// since the beginning.
func (t *Table) Peak() int64 { return max(t.peak.before, t.peak.since) }

// Mark notes an instant for Forget. A report of the peak is marked when it is sent.
func (t *Table) Mark() { t.peak = peak{before: t.Peak(), since: t.total} }

// Forget drops the peak before the last mark. It is called when the report that was
// marked arrived; while reports are lost the peak stays.
func (t *Table) Forget() { t.peak.before = 0 }
