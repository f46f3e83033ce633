package keys

// A Purse is what a region holds of one key. Instants are above 0, of a clock of its own in
// any unit. The zero value is that of a key never asked for. It is a value.
type Purse struct {
	Index int64 // of the window
	Ends  int64 // from which instant on nothing of it is handed on
	Units int64 // in hand
	Taken int64 // that were handed on of the window, returns taken off
	Left  int64 // that the coordinator could still grant, as it said last
	// Dry is how many units were refused last, 0 when some were granted: asking for as many
	// again in the window is in vain.
	Dry int64
}

// Open reports whether the window of the purse surely is open.
func (p Purse) Open(now int64) bool { return now < p.Ends }

// Take hands on units: 0, or from low to want.
func (p Purse) Take(now, low, want int64) (Purse, int64) {
	units := min(want, p.Units)
	if !p.Open(now) || units < low {
		return p, 0
	}
	p.Units -= units
	p.Taken += units
	return p, units
}

// PutBack takes units back that were handed on of a window and not spent, and returns how
// many. It is called once for units.
func (p Purse) PutBack(now, index, units int64) (Purse, int64) {
	if !p.Open(now) || index != p.Index {
		return p, 0
	}
	units = min(units, p.Taken)
	p.Units += units
	p.Taken -= units
	return p, units
}

// An Answer is what a coordinator said of a key.
type Answer struct {
	Index     int64 // of the window
	Ends      int64 // until when it surely is open, counted from before the command was sent
	Units     int64 // granted by it
	Remaining int64
	Least     int64 // units that were asked for at least
}

// Fill enters an answer. One of a window before is given up, because it may be over: so is what is
// in hand of a window before.
func (p Purse) Fill(a Answer) Purse {
	switch {
	case a.Index < p.Index:
		return p
	case a.Index > p.Index:
		p = Purse{Index: a.Index}
	}
	p.Ends = max(p.Ends, a.Ends)
	p.Units += a.Units
	p.Left, p.Dry = a.Remaining, 0
	if a.Units == 0 {
		p.Dry = a.Least
	}
	return p
}

// Lacks returns how many units are missing, at least one, so that as many as low can be handed
// on.
func (p Purse) Lacks(now, low int64) int64 {
	if p.Open(now) {
		low -= p.Units
	}
	return max(1, low)
}

// Ahead returns how many units to ask for of the window beyond those that somebody waits
// for: none for a key that was not used in it yet, and then as many as were, up to a part of
// what is left, so that the last units are not stranded with a region that asked early
// (Polychronopoulos and Kuck 1987, guided self-scheduling).
func (p Purse) Ahead(now int64, members int) int64 {
	if !p.Open(now) {
		return 0
	}
	return min(p.Taken, p.Left/int64(2*max(1, members)))
}

// Low reports whether to ask for more ahead of need: the key is used a good deal, and less is
// in hand than half of what to ask for.
func (p Purse) Low(now int64, members int) bool {
	return p.Taken >= often && 2*p.Units < p.Ahead(now, members)
}

// often is how many units of a window make a key one that is used a good deal.
const often = 8
