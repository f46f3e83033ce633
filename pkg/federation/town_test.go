package federation

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A town is regions that divide a budget and split their parts by the production functions,
// without a network between them and the ledger.
type town struct {
	t      *testing.T
	rng    *rand.Rand
	params ledger.Params
	state  ledger.State
	places []*place
	index  int64
	chunk  int64 // units of a request
}

// A place is one region.
type place struct {
	split    split
	fairness limiter.Fairness
	wants    map[string]int64 // of each tenant in a window
	demand   demand
	last     ledger.Grant
	seq      int64
	hand     int64 // units
	got      map[string]int64
}

func newTown(t *testing.T, rng *rand.Rand, limit int64, regions int) *town {
	w := &town{t: t, rng: rng, index: 100, chunk: max(1, limit/250)}
	w.params = ledger.Params{Limit: limit, Window: limiter.Second}
	for i := range regions {
		w.params.Members = append(w.params.Members, ledger.Member{Name: fmt.Sprint("r", i), Weight: 1, Borrowing: -1})
		w.places = append(w.places, &place{split: split{}, fairness: limiter.Fairness{Default: 1}, wants: map[string]int64{}})
	}
	return w
}

// lease asks the ledger.
func (w *town) lease(i int) {
	r := w.places[i]
	var wants, got int64
	for name, n := range r.wants {
		wants += n
		got += r.got[name]
	}
	r.seq++
	c := ledger.Command{
		Op: ledger.Lease, Member: w.params.Members[i].Name, Holder: "h", Seq: r.seq, Epoch: r.last.Epoch, Granted: r.last.Granted,
		Min: 1, Want: max(1, min(wants-got, w.chunk*10)), Demand: wants, Memory: ledger.Memory{Term: 1},
	}
	nominal := w.params.Members[i].Nominal
	all := r.split.tenants(w.index)
	all.say(&c, r.demand.level, nominal, w.params.Limit, 1)
	before := r.last
	w.state, r.last = w.state.Step(w.params, limiter.Instant(w.index)*limiter.Instant(w.params.Window), c)
	r.demand.level = reached(&c, &r.last, nominal)
	r.hand += r.last.Granted
	if r.last.Epoch == before.Epoch {
		r.hand -= before.Granted
	}
	if err := c.Validate(); err != nil {
		w.t.Fatal(err)
	}
}

// ask has a tenant ask for units that it still wants.
func (w *town) ask(i int, name string, most int64) int64 {
	r := w.places[i]
	q := &request{
		key: store.Key{}, params: limiter.Params{Rates: []limiter.Rate{{Limit: w.params.Limit, Window: w.params.Window}}, Fairness: r.fairness},
		Command: limiter.Command{Op: limiter.Take, Min: 1, Want: min(most, r.wants[name]-r.got[name]), Tenant: name},
	}
	if r.hand == 0 {
		w.lease(i)
	}
	if r.hand == 0 {
		r.split.missed(q, w.index)
		return 0
	}
	units := min(r.hand, q.Want)
	res := r.split.take(q, portion{
		rate: q.params.Rates[0], index: w.index, at: limiter.Instant(w.index) * limiter.Instant(w.params.Window),
		units: units, more: r.hand - units + r.last.Remaining,
	})
	if res.Granted == 0 {
		r.split.missed(q, w.index)
	}
	r.hand -= res.Granted
	r.got[name] += res.Granted
	return res.Granted
}

// An asker is a tenant of a region.
type asker struct {
	region int
	name   string
}

// begin opens the next window, and returns those that ask in it.
func (w *town) begin() (all []asker) {
	w.index++
	for i, r := range w.places {
		r.hand, r.got = 0, map[string]int64{}
		for name, units := range r.wants {
			if units > 0 {
				all = append(all, asker{i, name})
			}
		}
	}
	return all
}

// serve has tenants ask in any order until nobody gets anything. Then each says what it still
// wants.
func (w *town) serve(all []asker) {
	slices.SortFunc(all, func(a, b asker) int { return cmp.Or(cmp.Compare(a.region, b.region), cmp.Compare(a.name, b.name)) })
	round := func(most int64) (units int64) {
		w.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, a := range all {
			if r := w.places[a.region]; r.got[a.name] < r.wants[a.name] {
				units += w.ask(a.region, a.name, most)
			}
		}
		return units
	}
	for round(w.chunk) > 0 {
	}
	round(limiter.MaxLimit)
}

// part returns what a tenant uses at a level.
func (r *place) part(name string, level float64) float64 {
	i, ok := slices.BinarySearchFunc(r.fairness.Weights, name, func(w limiter.Weight, n string) int { return cmp.Compare(w.Tenant, n) })
	weight := r.fairness.Default
	if ok {
		weight = r.fairness.Weights[i].Weight
	}
	return min(float64(r.wants[name]), level*float64(weight))
}

// level returns that of one split over all tenants: weighted max-min fairness.
func (w *town) level() float64 {
	low, high := 0.0, float64(w.params.Limit)
	for range 60 {
		middle, sum := (low+high)/2, 0.0
		for _, r := range w.places {
			for name := range r.wants {
				sum += r.part(name, middle)
			}
		}
		if sum > float64(w.params.Limit) {
			high = middle
		} else {
			low = middle
		}
	}
	return low
}

// off returns by how much of the limit a tenant is from what it is due at most.
func (w *town) off() (most float64) {
	level := w.level()
	for _, r := range w.places {
		for name := range r.wants {
			most = max(most, math.Abs(r.part(name, level)-float64(r.got[name])))
		}
	}
	return most / float64(w.params.Limit)
}

// used returns what all tenants got.
func (w *town) used() (units int64) {
	for _, r := range w.places {
		for _, n := range r.got {
			units += n
		}
	}
	return units
}
