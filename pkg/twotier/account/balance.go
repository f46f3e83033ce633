package account

// A Balance is all that a holder holds of one key. It is the whole of the rules that
// keep the promise of a limit in a holder: a Key spends from the front without a
// lock, as Grant.Spend says, and does everything else by these methods.
//
// Window-coupled credits are all in front. Time-coupled ones of two grants may be
// held at once, the older in front, because they die at different instants.
type Balance struct{ Front, Back Grant }

// Spend admits a request of the cost from the front or else from the back, and
// returns what it is charged to; or it reports that neither suffices.
func (h Balance) Spend(now, cost int64) (Balance, Charge, bool) {
	h, ok := h.Swap(now, cost)
	if !ok {
		return h, Charge{}, false
	}
	h.Front, ok = h.Front.Spend(now, cost)
	return h, h.Front.Charge, ok
}

// Swap puts what can pay for the cost in front, or reports that nothing can.
func (h Balance) Swap(now, cost int64) (Balance, bool) {
	switch {
	case h.Front.Held(now) >= cost:
		return h, true
	case h.Back.Held(now) >= cost:
		return Balance{Front: h.Back, Back: h.Front}, true
	default:
		return h, false
	}
}

// Shortfall returns how many units have to be granted before a request of the cost can
// be admitted. Credits of windows join what is granted; those of a time do not.
func (h Balance) Shortfall(now, cost int64) int64 {
	if h.Front.ByTime {
		return cost
	}
	return cost - h.Front.Held(now)
}

// Receive takes a grant up, and returns what has to be given up for it. A grant
// without credits is a refusal, which also reports what windows are open.
//
//	the grant                               the balance
//	comes after its deadline                stays; the grant is given up
//	is charged to the windows of the front  joins the front, whose windows end when its do
//	is charged to other windows             replaces the front, which is given up; with
//	                                        carryOver it takes the front over
//	is time-coupled                         gets behind the front; what was there first
//	                                        keeps its place unless the front has less
//
// A late grant may be of windows that are over, so nobody may spend it.
func (h Balance) Receive(now int64, grant Grant, carryOver bool) (next Balance, lost Grant) {
	switch {
	case now >= grant.Deadline:
		return h, grant
	case h.Front.Held(now) == 0:
		h.Front = grant
		return h, Grant{}
	case grant.ByTime || h.Front.ByTime:
		return h.putBehind(now, grant)
	case h.Front.Alike(grant.Charge):
		h.Front = h.Front.join(grant, h.Front.Carried)
		return h, Grant{}
	case carryOver:
		h.Front = h.Front.join(grant, h.Front.Credits)
		return h, Grant{}
	default:
		lost, h.Front = h.Front, grant
		return h, lost
	}
}

// putBehind keeps the grant and the better one of the two that are held. The
// older stays in front, to be spent before it dies.
func (h Balance) putBehind(now int64, grant Grant) (Balance, Grant) {
	if grant.Credits == 0 {
		return h, Grant{}
	}
	lost := h.Back
	if h.Front.Held(now) < h.Back.Held(now) {
		lost, h.Front = h.Front, h.Back
	}
	h.Back = grant
	return h, lost
}

// CarryOver lets credits whose windows are over live on, at most most of them, in
// the windows of into.
func (h Balance) CarryOver(now, most int64, into Grant) Balance {
	if now < h.Front.Deadline || h.Front.ByTime || h.Front.Credits == 0 {
		return h
	}
	into.Credits = min(h.Front.Credits, max(most, 0))
	into.Carried = into.Credits
	h.Front = into
	return h
}

// Refund puts the cost of a request that was not let through after all beside
// credits of the same charge, or reports that there are none.
func (h Balance) Refund(c Charge, cost int64) (Balance, bool) {
	switch {
	case h.Front.Alike(c):
		h.Front.Credits += cost
	case h.Back.Alike(c):
		h.Back.Credits += cost
	default:
		return h, false
	}
	return h, true
}

// returnable returns what of the balance may be given back.
func (h Balance) returnable(now int64) []Grant {
	var parts []Grant
	for _, part := range []Grant{h.Front.Returnable(now), h.Back.Returnable(now)} {
		if part.Credits > 0 {
			parts = append(parts, part)
		}
	}
	return parts
}
