package pool

import "slices"

// Opinions are the limits that holders infer, of those that infer one, from the
// smallest.
type opinions []int32

// An opinion is a holder's limit, 0 for none, and about where it stood among the
// others when it was given. It has moved since by as many as have passed it.
type opinion struct{ limit, place int32 }

// replace changes a holder's opinion. The opinions between its place and the new one
// are shifted: few, when opinions drift.
func (o *opinions) replace(was *opinion, limit int64) {
	is := opinion{limit: int32(limit)}
	switch {
	case was.limit == is.limit:
		return
	case was.limit == 0:
		is.place = o.below(is.limit, 0)
		*o = slices.Insert(*o, int(is.place), is.limit)
	case is.limit == 0:
		at := o.below(was.limit, was.place)
		*o = slices.Delete(*o, int(at), int(at)+1)
	default:
		from := o.below(was.limit, was.place)
		is.place = o.below(is.limit, from)
		o.shift(from, &is)
	}
	*was = is
}

// shift moves the opinion at a place to that of another.
func (o opinions) shift(from int32, to *opinion) {
	if from < to.place {
		to.place-- // it is below itself no more
		copy(o[from:to.place], o[from+1:])
	} else {
		copy(o[to.place+1:from+1], o[to.place:])
	}
	o[to.place] = to.limit
}

// below returns how many are below a limit. The search starts at a guess and doubles
// its stride, so that a good guess costs little (Bentley and Yao, "An Almost Optimal
// Algorithm for Unbounded Searching", 1976).
func (o opinions) below(limit, guess int32) int32 {
	low, high := int32(0), int32(len(o))
	guess = min(guess, high)
	if guess < high && o[guess] < limit {
		low = guess + 1
		for stride := int32(1); low+stride <= high; stride *= 2 {
			if o[low+stride-1] >= limit {
				high = low + stride - 1
				break
			}
			low += stride
		}
	} else {
		high = guess
		for stride := int32(1); stride <= high; stride *= 2 {
			if o[high-stride] < limit {
				low = high - stride + 1
				break
			}
			high -= stride
		}
	}
	at, _ := slices.BinarySearch(o[low:high], limit)
	return low + int32(at)
}

// aggregate returns the one that decides, or otherwise when there is none.
func (o opinions) aggregate(a Aggregate, otherwise int64) int64 {
	switch {
	case len(o) == 0:
		return otherwise
	case a == Min:
		return int64(o[0])
	default:
		return int64(o[(len(o)-1)/2])
	}
}
