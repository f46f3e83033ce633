package ledger

// A claim is one member's part in the division of a window.
type claim struct {
	weight, nominal int64
	met, unmet      int64 // of its tenants: part of the share, and the weight of the others
	has             int64
	low, high       int64 // what it gets at least, and what it can make use of
	share           int64 // what it would get if neither bound it
	gets            int64
	settled         bool
}

// fill divides a whole by weighted max-min fairness: each gets its nominal share and,
// by weight, of what those that want less than their part leave, but at least low and
// at most high. Shares are found in rounds. When what all would get is more than there
// is, those are settled that get more than their share, otherwise those that want
// less of it: that changes the shares of the rest in one direction only (CSS Flexible
// Box Layout, 9.7).
func fill(claims []claim, whole int64) {
	for range claims {
		beyond := -divide(claims, whole)
		for i := range claims {
			if c := &claims[i]; !c.settled {
				c.gets = max(c.low, min(c.high, c.share))
				beyond += c.gets
			}
		}
		for i := range claims {
			if c := &claims[i]; beyond > 0 && c.gets > c.share || beyond <= 0 && c.gets < c.share {
				c.settled = true
			}
		}
	}
}

// divide finds the shares of those that are not settled in what the others leave,
// which it returns: nominal shares first, then what tenants want that want little, the
// rest by the weight of the others. When what tenants want does not fit it counts for
// nothing, and what nominal shares leave goes by weight. The remainder of rounding is
// nobody's.
func divide(claims []claim, whole int64) int64 {
	rest, nominal, weights, met, unmet := whole, int64(0), int64(0), int64(0), int64(0)
	for i := range claims {
		if c := &claims[i]; c.settled {
			rest -= c.gets
		} else {
			nominal += c.nominal
			weights += c.weight
			met += c.met
			unmet += c.unmet
		}
	}
	rest = max(0, rest)
	for i := range claims {
		c := &claims[i]
		switch {
		case c.settled:
		case rest < nominal:
			c.share = min(c.nominal, part(rest, c.weight, weights))
		case rest-nominal < met:
			c.share = c.nominal + part(rest-nominal, c.weight, weights)
		default:
			c.share = c.nominal + c.met + part(rest-nominal-met, c.unmet, unmet)
		}
	}
	return rest
}

// part returns ⌊whole · weight / weights⌋. The product might not be exact; those of
// what the first division leaves are.
func part(whole, weight, weights int64) int64 {
	return whole/weights*weight + whole%weights*weight/weights
}
