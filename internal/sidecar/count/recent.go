package count

import (
	"maps"
	"math"
	"time"
)

// halfLife is after how long units count half in the rates of the last minutes.
const halfLife = 5 * time.Minute

// recent follows the rates of the keys of a sketch: sums whose units lose half their weight
// every half-life, and what all units would weigh at one a minute.
type recent struct {
	sums   map[string]*lasting
	weight float64 // of one unit a minute for as long as there are sums
	at     time.Time
	calls  uint64
}

// A lasting is what a key was admitted and refused, by weight, and its counts that are in it.
type lasting struct {
	admitted, refused float64
	counted           tally
	call              uint64 // the last one with the key
}

// A rate is in units a minute.
type rate struct{ admitted, refused float64 }

func (r rate) perMinute() float64 { return r.admitted + r.refused }

// date sets the rates of keys. The next call continues with these keys. The first one takes
// counts for spread evenly since begun.
func (s *sketch) date(keys []hotKey, begun, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lately.rate(keys, begun, now)
}

// rate adds what was counted since the last call, and sets the rates. All counts of a key that
// is new are taken for counted since then, and in the first minute for what came in one.
func (r *recent) rate(keys []hotKey, begun, now time.Time) {
	kept, share, first := 1.0, 1.0, r.at.IsZero()
	if first {
		r.at, r.sums = begun, make(map[string]*lasting, len(keys))
	}
	if passed := now.Sub(r.at); passed > 0 {
		kept = math.Exp2(-float64(passed) / float64(halfLife))
		r.weight = r.weight*kept + (1-kept)*halfLife.Minutes()/math.Ln2
		if first {
			share = r.weight / passed.Minutes()
		}
	}
	r.at = now
	r.calls++
	minute := max(1, r.weight)
	for i := range keys {
		k := &keys[i]
		sum := r.sums[k.value]
		if sum == nil {
			sum = new(lasting)
			r.sums[k.value] = sum
		}
		sum.add(k, kept, share)
		sum.call = r.calls
		k.lately = rate{admitted: sum.admitted / minute, refused: sum.refused / minute}
	}
	maps.DeleteFunc(r.sums, func(_ string, sum *lasting) bool { return sum.call != r.calls })
}

// add lets old units weigh less, and adds a share of those that are new.
func (l *lasting) add(k *hotKey, kept, share float64) {
	l.admitted = l.admitted*kept + share*float64(max(0, k.admitted-l.counted.admitted))
	l.refused = l.refused*kept + share*float64(max(0, k.refused-l.counted.refused))
	l.counted = tally{admitted: k.admitted, refused: k.refused}
}
