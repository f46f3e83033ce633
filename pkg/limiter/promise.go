package limiter

// MostPerWindow returns the most that is spent in one aligned window of the rate,
// which is one of p: its limit, and of a bucket what it holds on top of what flows
// out.
func (p Params) MostPerWindow(r Rate) int64 {
	if p.Algorithm.machine() != bucketMachine {
		return r.Limit
	}
	cost, _ := r.pace()
	return p.brim(r)/cost + r.Limit
}
