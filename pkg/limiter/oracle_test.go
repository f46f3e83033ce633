package limiter_test

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A textbook is an algorithm as it is usually written down, in rational numbers. It
// returns how many units fit at an instant, when that many will, and how long the last
// of some that are charged has to wait.
type textbook interface {
	left(now limiter.Instant) int64
	wait(now limiter.Instant, amount int64) limiter.Micros
	charge(now limiter.Instant, amount int64) limiter.Micros
}

// TestStepIsTheTextbook compares takes of random amounts, at random instants and at
// exactly those that the algorithm names, with textbook forms.
func TestStepIsTheTextbook(t *testing.T) {
	const timelines, events = 400, 60
	for name, c := range map[string]struct {
		params func(rng *rand.Rand) limiter.Params
		book   func(p limiter.Params) textbook
	}{
		"token bucket": {
			func(rng *rand.Rand) limiter.Params { return bucketParams(rng, limiter.TokenBucket) },
			func(p limiter.Params) textbook { return newTokens(p) },
		},
		"GCRA": {
			func(rng *rand.Rand) limiter.Params { return bucketParams(rng, limiter.GCRA) },
			func(p limiter.Params) textbook { return newArrivals(p) },
		},
		"leaky bucket": {
			func(rng *rand.Rand) limiter.Params { return bucketParams(rng, limiter.LeakyBucket) },
			func(p limiter.Params) textbook { return newQueue(p) },
		},
		"sliding log": {
			func(rng *rand.Rand) limiter.Params {
				p := limiter.Params{Algorithm: limiter.SlidingLog, Rates: []limiter.Rate{randomRate(rng, 50)}}
				p.Lifetime = limiter.Micros(rng.IntN(2) * rng.IntN(int(p.Rates[0].Window)))
				return p
			},
			func(p limiter.Params) textbook {
				return &grants{window: p.Rates[0].Window, limit: p.Rates[0].Limit, life: p.Lifetime}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			granted, refused := 0, 0
			for seed := range uint64(timelines) {
				rng := rand.New(rand.NewPCG(seed, 2))
				p := c.params(rng)
				if err := p.Validate(); err != nil {
					t.Fatal(err)
				}
				book, now := c.book(p), limiter.Instant(1_790_000_000_000_000+rng.Int64N(1e9))
				var s limiter.State
				for range events {
					low := 1 + rng.Int64N(3)
					high := low + rng.Int64N(p.Rates[0].Limit)
					left := book.left(now)
					var res limiter.Result
					s, res = p.Step(s, now, limiter.Command{Min: low, Want: high})
					var want limiter.Result
					if left >= low {
						granted++
						want.Granted = min(high, left)
						want.Delay = book.charge(now, want.Granted)
						want.Remaining = left - want.Granted
					} else {
						refused++
						want.Remaining = left
						want.RetryAfter = book.wait(now, low)
					}
					if res.Reason == limiter.TooLarge {
						want.RetryAfter = 0
					}
					if res.Granted != want.Granted || res.Remaining != want.Remaining || res.RetryAfter != want.RetryAfter || res.Delay != want.Delay {
						t.Fatalf("seed %d, %d to %d by %+v: got %+v, the textbook says %+v", seed, low, high, p, res, want)
					}
					switch rng.IntN(4) {
					case 0:
					case 1:
						now = now.Add(max(0, res.RetryAfter-1))
					case 2:
						now = now.Add(res.RetryAfter)
					default:
						now = now.Add(limiter.Micros(rng.Int64N(int64(p.Rates[0].Window)) / (1 + rng.Int64N(20))))
					}
				}
			}
			if granted < 3*timelines || refused < 3*timelines {
				t.Errorf("%d granted and %d refused: the timelines do not reach far enough", granted, refused)
			}
		})
	}
}

func randomRate(rng *rand.Rand, most int64) limiter.Rate {
	lengths := []limiter.Micros{limiter.MinWindow, limiter.MinWindow + 1, limiter.Second, 7*limiter.Second + 3, 60 * limiter.Second}
	return limiter.Rate{Limit: 1 + rng.Int64N(most), Window: lengths[rng.IntN(len(lengths))]}
}

func bucketParams(rng *rand.Rand, a limiter.Algorithm) limiter.Params {
	for {
		r := randomRate(rng, 1000)
		p := limiter.Params{Algorithm: a, Rates: []limiter.Rate{r}}
		if a == limiter.LeakyBucket {
			p.MaxDelay = limiter.Micros(rng.Int64N(int64(r.Window)))
		} else {
			p.Rates[0].Burst = rng.Int64N(2 * r.Limit)
			p.Lifetime = limiter.Micros(rng.IntN(2) * rng.IntN(int(r.Window)))
		}
		if p.Validate() == nil {
			return p
		}
	}
}

func fraction(a, b int64) *big.Rat { return big.NewRat(a, b) }

func whole(a int64) *big.Rat { return big.NewRat(a, 1) }

func add(a, b *big.Rat) *big.Rat { return new(big.Rat).Add(a, b) }

func sub(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }

func mul(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }

func floor(a *big.Rat) int64 {
	return new(big.Int).Div(a.Num(), a.Denom()).Int64() // rounds down
}

func ceil(a *big.Rat) int64 { return -floor(new(big.Rat).Neg(a)) }

func larger(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}

// tokens is a bucket of tokens that is refilled up to its capacity. The most that
// flows in while grants wait to be spent is taken off the capacity.
type tokens struct {
	rate, capacity, level *big.Rat
	at                    limiter.Instant
}

func newTokens(p limiter.Params) *tokens {
	rate := fraction(p.Rates[0].Limit, int64(p.Rates[0].Window))
	capacity := sub(whole(most(p.Rates[0])), mul(rate, whole(int64(p.Lifetime))))
	return &tokens{rate: rate, capacity: capacity, level: capacity}
}

func (b *tokens) refill(now limiter.Instant) {
	b.level = add(b.level, mul(b.rate, whole(int64(now.Sub(b.at)))))
	if b.level.Cmp(b.capacity) > 0 {
		b.level = b.capacity
	}
	b.at = now
}

func (b *tokens) left(now limiter.Instant) int64 {
	b.refill(now)
	return floor(b.level)
}

func (b *tokens) wait(_ limiter.Instant, amount int64) limiter.Micros {
	return limiter.Micros(ceil(new(big.Rat).Quo(sub(whole(amount), b.level), b.rate)))
}

func (b *tokens) charge(_ limiter.Instant, amount int64) limiter.Micros {
	b.level = sub(b.level, whole(amount))
	return 0
}

// arrivals is the generic cell rate algorithm: the theoretical arrival time of the
// next cell, an increment and a tolerance.
type arrivals struct {
	increment, tolerance, next *big.Rat
}

func newArrivals(p limiter.Params) *arrivals {
	t := fraction(int64(p.Rates[0].Window), p.Rates[0].Limit)
	return &arrivals{increment: t, tolerance: sub(mul(t, whole(most(p.Rates[0]))), whole(int64(p.Lifetime))), next: new(big.Rat)}
}

func (g *arrivals) after(now limiter.Instant, amount int64) *big.Rat {
	return add(larger(g.next, whole(int64(now))), mul(g.increment, whole(amount)))
}

func (g *arrivals) left(now limiter.Instant) int64 {
	return floor(new(big.Rat).Quo(sub(add(whole(int64(now)), g.tolerance), g.after(now, 0)), g.increment))
}

func (g *arrivals) wait(now limiter.Instant, amount int64) limiter.Micros {
	return limiter.Micros(ceil(sub(sub(g.after(now, amount), g.tolerance), whole(int64(now)))))
}

func (g *arrivals) charge(now limiter.Instant, amount int64) limiter.Micros {
	g.next = g.after(now, amount)
	return 0
}

// queue lets one unit out each increment.
type queue struct {
	increment, free *big.Rat // free is when the next unit may leave
	longest         limiter.Micros
}

func newQueue(p limiter.Params) *queue {
	return &queue{increment: fraction(int64(p.Rates[0].Window), p.Rates[0].Limit), free: new(big.Rat), longest: p.MaxDelay}
}

func (q *queue) leaves(now limiter.Instant, amount int64) *big.Rat {
	return add(larger(q.free, whole(int64(now))), mul(q.increment, whole(amount-1)))
}

func (q *queue) left(now limiter.Instant) int64 {
	room := sub(whole(int64(now.Add(q.longest))), q.leaves(now, 1))
	if room.Sign() < 0 {
		return 0
	}
	return floor(new(big.Rat).Quo(room, q.increment)) + 1
}

func (q *queue) wait(now limiter.Instant, amount int64) limiter.Micros {
	return limiter.Micros(ceil(sub(q.leaves(now, amount), whole(int64(now.Add(q.longest))))))
}

func (q *queue) charge(now limiter.Instant, amount int64) limiter.Micros {
	last := q.leaves(now, amount)
	q.free = add(last, q.increment)
	return limiter.Micros(ceil(sub(last, whole(int64(now)))))
}

// grants is a log of all that was ever granted.
type grants struct {
	window, life limiter.Micros
	limit        int64
	log          []limiter.Entry
}

func (g *grants) left(now limiter.Instant) int64 { return g.leftAfter(now, 0) }

// leftAfter returns what is left when each grant counts for that much longer.
func (g *grants) leftAfter(now limiter.Instant, longer limiter.Micros) int64 {
	left := g.limit
	for _, e := range g.log {
		if e.At.Add(g.life+g.window+longer) > now {
			left -= e.Count
		}
	}
	return left
}

func (g *grants) wait(now limiter.Instant, amount int64) limiter.Micros {
	for _, e := range g.log {
		if at := e.At.Add(g.life + g.window); at > now && g.left(at) >= amount {
			return at.Sub(now)
		}
	}
	return 0
}

func (g *grants) charge(now limiter.Instant, amount int64) limiter.Micros {
	g.log = append(g.log, limiter.Entry{At: now, Count: amount})
	return 0
}

// TestSlidingWindowIsAtMostOnePartLate compares a sliding window with an exact log:
// it never has more left, and never less than when each grant counted a part longer.
func TestSlidingWindowIsAtMostOnePartLate(t *testing.T) {
	const timelines, events = 400, 200
	late := 0
	for seed := range uint64(timelines) {
		rng := rand.New(rand.NewPCG(seed, 3))
		r := randomRate(rng, 50)
		p := limiter.Params{Algorithm: limiter.SlidingWindow, Rates: []limiter.Rate{r}, Buckets: 1 + rng.Int64N(limiter.MaxBuckets)}
		part := (r.Window + limiter.Micros(p.Buckets) - 1) / limiter.Micros(p.Buckets)
		if rng.IntN(4) == 0 { // a log that is too long to be exact
			p.Algorithm, p.Buckets, p.Rates[0].Limit = limiter.SlidingLog, 0, limiter.MaxLog+1+rng.Int64N(1000)
			part = (r.Window + limiter.MaxLog - 1) / limiter.MaxLog
		}
		p.Lifetime = limiter.Micros(rng.IntN(2) * rng.IntN(int(r.Window)))
		exact := grants{window: r.Window, limit: p.Rates[0].Limit, life: p.Lifetime}
		now := limiter.Instant(1_790_000_000_000_000 + rng.Int64N(1e9))
		var s limiter.State
		for range events {
			var res limiter.Result
			before, early := exact.left(now), exact.leftAfter(now, part-1)
			s, res = p.Step(s, now, limiter.Command{Min: 1, Want: 1 + rng.Int64N(5+exact.limit/100)})
			had := res.Granted + res.Remaining
			if had > before || had < early {
				t.Fatalf("seed %d: %d were left, exactly %d, a part of %d later %d: %+v", seed, had, before, part, early, p)
			}
			if had < before {
				late++
			}
			exact.charge(now, res.Granted)
			now = now.Add(limiter.Micros(rng.Int64N(int64(r.Window)) / (1 + rng.Int64N(50))))
		}
	}
	if late < timelines {
		t.Errorf("only %d answers were late: the timelines do not reach far enough", late)
	}
}
