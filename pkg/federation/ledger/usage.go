package ledger

// Admitted returns what all members admitted in a window, as far as they reported
// it, and whether that is all: each that was granted anything has reported the counts
// of all its holders.
func (c Closed) Admitted() (admitted int64, all bool) {
	known, all := int64(0), true
	for _, u := range c.Usage {
		known += u.Granted
		admitted += u.Admitted
		if u.Granted > 0 || u.Reported {
			all = all && u.Complete
		}
	}
	return admitted, all && known == c.Granted // or a memory before knew of others
}

// Overshoot returns Δ, the units that were admitted beyond the limit, and whether that
// is certain. Otherwise it is at least that.
func (c Closed) Overshoot() (int64, bool) {
	admitted, all := c.Admitted()
	return max(0, admitted-c.Limit), all
}

// Unused returns U, the units that were left over although somebody wanted them, and
// whether that is certain.
func (c Closed) Unused() (int64, bool) {
	admitted, all := c.Admitted()
	wanted := admitted
	for _, u := range c.Usage {
		wanted += u.Refused
	}
	return max(0, min(wanted, c.Limit)-admitted), all
}
