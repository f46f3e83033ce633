package policy

// Carry returns how many units each holder may carry into a window of the limit,
// which is one of p: none unless leases carry over. Then a lease may be untouched
// but for one unit, and what was left when it was asked for ahead of need is there
// as well. So a window admits at most limiter.Params.MostPerWindow and this for each
// holder.
func (l *Limit) Carry(p *Policy) int64 {
	c := l.ConsistencyOf(p)
	if c.Mode != Leased || c.Expiry != CarryOver {
		return 0
	}
	largest := c.Largest()
	if l.Cost != nil {
		largest = max(largest, l.Cost.Max)
	}
	return largest - 1 + c.LowWater
}

// Settled reports whether each request is charged in full before it is let
// through. Where the response names a cost above what was reserved nothing bounds
// what a window admits.
func (l *Limit) Settled() bool {
	c := l.Cost
	return c == nil || c.ResponseHeader == "" || c.RequestHeader == "" && c.Default == c.Max
}
