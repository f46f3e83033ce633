package pool_test

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A reference divides a pool by the same rules as State in the plainest way: it
// remembers a pool.Memory with instants for lengths of time, and counts everything
// again for every command.
type reference struct {
	pool.Memory
	now, until limiter.Instant
	expires    map[string]limiter.Instant
}

func (r *reference) step(p pool.Params, now limiter.Instant, c pool.Command) pool.Grant {
	if p.Generation >= r.Params.Generation {
		r.Params = p
	}
	if r.Limit == 0 {
		r.Limit = p.Initial
	}
	r.settle()
	r.now = max(r.now, now)
	occupied, bound := r.observe(c)
	fresh := true
	if i := r.find(c.Holder); i >= 0 {
		fresh = c.Seq > r.Holders[i].Seq
	} else if c.Op == pool.Leave {
		fresh = false
	}
	if fresh {
		r.refresh(c)
	}
	r.expire()
	i := r.find(c.Holder)
	switch {
	case c.Op == pool.Leave && fresh:
		r.remove(i)
		i = -1
	case c.Op == pool.Beat && i < 0:
		r.refresh(c)
		r.Holders = append(r.Holders, pool.Record{Holder: c.Holder, Unacked: c.Held})
		i, fresh = len(r.Holders)-1, true
	}
	if c.Op == pool.Beat && fresh {
		r.note(i, c)
		r.settle()
		r.allot(i)
	}
	r.settle()
	g := pool.Grant{
		Seq: c.Seq, Term: r.Term, Limit: r.Limit, Holders: int64(len(r.Holders)), Occupied: occupied, Bound: bound,
		Quarantined: max(0, r.until.Sub(r.now)),
	}
	for _, h := range r.Holders {
		g.Granted += h.Share
		g.InFlight += h.InFlight
	}
	if i >= 0 {
		h := r.Holders[i]
		g.Seq, g.Generation, g.Share, g.TTL = h.Seq, h.Generation, h.Share, r.expires[h.Holder].Sub(r.now)
	}
	return g
}

func (r *reference) find(name string) int {
	return slices.IndexFunc(r.Holders, func(h pool.Record) bool { return h.Holder == name })
}

func (r *reference) quarantined() bool { return r.now < r.until }

func (r *reference) reserve(h pool.Record) int64 {
	if r.Params.Handoff == pool.Occupancy {
		return max(h.Share, h.InFlight)
	}
	return max(h.Unacked, h.InFlight)
}

func (r *reference) reserved(but string) (sum int64) {
	for _, h := range r.Holders {
		if h.Holder != but {
			sum += r.reserve(h)
		}
	}
	return sum
}

func (r *reference) observe(c pool.Command) (occupied, bound int64) {
	own, most := int64(0), c.InFlight
	if i := r.find(c.Holder); i >= 0 {
		h := r.Holders[i]
		own = r.reserve(h)
		if c.Peak > h.Peak {
			most = c.Peak
		}
		if c.Seq <= h.Seq {
			most = 0
		}
	}
	occupied, bound = r.reserved(c.Holder)+max(own, most), r.Bound
	if r.quarantined() {
		bound = max(bound, occupied)
	}
	return occupied, bound
}

func (r *reference) refresh(c pool.Command) {
	end := r.now.Add(r.Params.TTL)
	if r.quarantined() && c.Term != r.Term {
		end = min(end, r.until)
	}
	r.expires[c.Holder] = max(r.expires[c.Holder], end)
}

func (r *reference) expire() {
	var gone []string
	for _, h := range r.Holders {
		if r.expires[h.Holder] <= r.now {
			gone = append(gone, h.Holder)
		}
	}
	slices.SortFunc(gone, func(a, b string) int {
		return cmp.Or(cmp.Compare(r.expires[a], r.expires[b]), cmp.Compare(a, b))
	})
	for _, name := range gone {
		r.remove(r.find(name))
	}
}

func (r *reference) remove(i int) {
	last := len(r.Holders) - 1
	delete(r.expires, r.Holders[i].Holder)
	r.Holders[i] = r.Holders[last]
	r.Holders = r.Holders[:last]
}

func (r *reference) note(i int, c pool.Command) {
	h := &r.Holders[i]
	if c.Term == r.Term && h.Generation > 0 && c.Applied == h.Generation {
		h.Unacked = h.Share
	}
	if c.Term != r.Term {
		h.Unacked = max(h.Unacked, c.Held)
	}
	h.Seq, h.Held, h.InFlight, h.Peak, h.Limit = c.Seq, c.Held, c.InFlight, c.Peak, c.Limit
}

func (r *reference) settle() {
	var opinions []int64
	for _, h := range r.Holders {
		if h.Limit > 0 {
			opinions = append(opinions, h.Limit)
		}
	}
	slices.Sort(opinions)
	if n := len(opinions); n > 0 {
		r.Limit = opinions[(n-1)/2]
		if r.Params.Aggregate == pool.Min {
			r.Limit = opinions[0]
		}
	}
	r.Limit = min(max(r.Limit, r.Params.Min), r.Params.Max)
	reserved := r.reserved("")
	switch {
	case reserved <= r.Limit:
		r.Bound = r.Limit
	case r.quarantined():
		r.Bound = max(r.Bound, r.Limit, reserved)
	default:
		r.Bound = max(r.Bound, r.Limit)
	}
}

func (r *reference) allot(i int) {
	h := &r.Holders[i]
	share := min(r.target(i), r.Limit-r.reserved(h.Holder))
	if r.quarantined() {
		share = min(share, h.Held)
	}
	share = max(0, share)
	if share != h.Share || h.Generation == 0 {
		r.Generation++
		h.Generation, h.Share, h.Unacked = r.Generation, share, max(h.Unacked, share)
	}
}

func (r *reference) target(i int) int64 {
	if r.Params.Allocation == pool.EqualSplit {
		return split(r.Limit, len(r.Holders), i)
	}
	spare, hungry, rank := r.Limit, 0, 0
	for j, h := range r.Holders {
		switch {
		case h.InFlight < h.Share:
			spare -= h.InFlight + 1
		case j < i:
			rank++
			hungry++
		default:
			hungry++
		}
	}
	if h := r.Holders[i]; h.InFlight < h.Share {
		return h.InFlight + 1
	}
	return max(1, split(max(0, spare), hungry, rank))
}

// split deals a whole out one by one.
func split(whole int64, parts, i int) (part int64) {
	for unit := range whole {
		if int(unit)%parts == i {
			part++
		}
	}
	return part
}

// TestStepIsTheReference compares every answer and what is remembered after it.
func TestStepIsTheReference(t *testing.T) {
	for seed := range uint64(200) {
		d := rand.New(rand.NewPCG(seed, 2))
		now := limiter.Instant(d.Int64N(1 << 20))
		s, r := pool.New(3), &reference{Memory: pool.Memory{Term: 3}, expires: map[string]limiter.Instant{}}
		p := someParams(d, 0)
		if d.IntN(2) == 0 {
			s = pool.Begin(3, now, p)
			r.now, r.until = now, now.Add(p.Quarantine)
			p.Quarantine = min(p.Quarantine, 4)
		}
		quarantine := p.Quarantine
		for i := range 600 {
			if d.IntN(50) == 0 {
				p = someParams(d, p.Generation)
				p.Quarantine = quarantine
			}
			now += limiter.Instant(d.Int64N(4)) - 1
			c := someCommand(d, s.Memory())
			got, err := s.Step(p, now, c)
			if err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, i, err)
			}
			if want := r.step(p, now, c); got != want {
				t.Fatalf("seed %d, step %d, %+v: answer (-want +got)\n%s", seed, i, c, gocmp.Diff(want, got))
			}
			if want, got := r.memory(), s.Memory(); !reflect.DeepEqual(want, got) {
				t.Fatalf("seed %d, step %d, %+v: memory (-want +got)\n%s", seed, i, c, gocmp.Diff(want, got))
			}
		}
	}
}

func (r *reference) memory() pool.Memory {
	m := r.Memory
	m.Quarantined = max(0, r.until.Sub(r.now))
	m.Holders = make([]pool.Record, len(r.Holders))
	copy(m.Holders, r.Holders)
	for i := range m.Holders {
		m.Holders[i].Expires = r.expires[m.Holders[i].Holder].Sub(r.now)
	}
	return m
}

func someParams(d *rand.Rand, generation int64) pool.Params {
	p := pool.Params{
		Min: 1 + d.Int64N(5), Aggregate: pool.Aggregate(d.IntN(2)), Allocation: pool.Allocation(d.IntN(2)),
		Handoff: pool.Handoff(d.IntN(2)), TTL: limiter.Micros(1 + d.Int64N(30)), Quarantine: limiter.Micros(d.Int64N(60)),
		Generation: max(0, generation+d.Int64N(4)-1),
	}
	p.Max = p.Min + d.Int64N(40)
	p.Initial = p.Min + d.Int64N(p.Max-p.Min+1)
	return p
}

// someCommand is what one of a dozen holders may send, or one that is not honest.
func someCommand(d *rand.Rand, m pool.Memory) pool.Command {
	c := pool.Command{
		Op: pool.Beat, Holder: string(rune('a' + d.IntN(12))), Seq: 1 + d.Int64N(20),
		Term: m.Term - d.Int64N(2), Held: d.Int64N(6), InFlight: d.Int64N(6), Limit: max(0, d.Int64N(60)-10),
	}
	if i := slices.IndexFunc(m.Holders, func(r pool.Record) bool { return r.Holder == c.Holder }); i >= 0 {
		r := m.Holders[i]
		c.Seq = max(1, r.Seq+d.Int64N(4)-1)
		c.Applied = max(0, r.Generation-d.Int64N(2))
	} else {
		c.Applied = d.Int64N(m.Generation + 1)
	}
	c.Peak = c.InFlight + d.Int64N(3)
	if d.IntN(30) == 0 {
		c.Op, c.InFlight = pool.Leave, 0
	}
	return c
}
