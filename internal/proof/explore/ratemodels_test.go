package explore_test

import "github.com/weir-dev/weir/pkg/limiter"

// rateModels are those whose credits are time-coupled: at whatever instant of its
// lifetime a credit is spent, the promise holds for every interval.
func rateModels() []model {
	ahead := func(f *fleet) { f.lowWater = 1 }
	late := func(f *fleet) { f.late = true }
	costly := func(f *fleet) { f.lowWater, f.costs = 1, []int64{1, 2} }
	gcra := with(bucket(1, 3, half+quarter), func(p *limiter.Params) { p.Algorithm = limiter.GCRA })
	parts := with(sliding(3, whole, quarter), func(p *limiter.Params) { p.Algorithm, p.Buckets = limiter.SlidingWindow, 2 })
	return []model{
		{"bucket", 5, fleetOf(quarter, 2, costly, bucket(2, 3, half))},
		{"bucket, 4 holders", 5, fleetOf(half, 1, func(f *fleet) { f.holders, f.lowWater = 4, 1 }, bucket(1, 2, half+quarter))},
		{"bucket, late messages", 10, fleetOf(half, 2, late, bucket(1, 2, half+quarter))},
		{"bucket, returns", 6, fleetOf(half, 2, func(f *fleet) { f.returns, f.lowWater = true, 1 }, gcra)},
		{"bucket, the store forgets", 6, fleetOf(quarter, 2, func(f *fleet) { f.restarts, f.lowWater = 1, 1 }, bucket(2, 3, half))},
		{"bucket, the clock steps back", 5, fleetOf(half, 2, func(f *fleet) { f.stepBack, f.lowWater, f.expires = 1, 1, true }, bucket(1, 2, half+quarter))},
		{"bucket, another store takes over", 5, fleetOf(half, 2, func(f *fleet) { f.lowWater, f.moves = 1, true }, bucket(1, 2, half+quarter))},

		{"sliding", 1, fleetOf(quarter, 2, costly, sliding(2, whole, half))},
		{"sliding, late messages", 5, fleetOf(half, 2, late, sliding(2, whole, half+quarter))},
		{"sliding, returns", 3, fleetOf(half, 2, func(f *fleet) { f.returns, f.lowWater = true, 1 }, sliding(3, whole, half+quarter))},
		{"sliding, the store forgets", 2, fleetOf(quarter, 2, func(f *fleet) { f.restarts, f.lowWater = 1, 1 }, sliding(2, whole, half))},
		{"sliding, the clock steps back", 2, fleetOf(quarter, 2, func(f *fleet) { f.stepBack, f.lowWater, f.expires = 1, 1, true }, sliding(2, whole, half))},
		{"sliding in parts", 3, fleetOf(quarter, 2, ahead, parts)},

		{"edit to a faster bucket", 5, fleetOf(half, 5, func(f *fleet) { f.holders, f.lowWater, f.costs = 1, 5, []int64{1, 5} },
			bucket(1, 6, whole), bucket(4, 6, whole))},
		{"edit to a slower and smaller bucket", 4, fleetOf(quarter, 3, ahead, bucket(4, 3, half), bucket(2, 2, quarter))},
		{"edit to a smaller sliding sum", 2, fleetOf(quarter, 2, ahead, sliding(2, whole, half), sliding(1, whole, half))},
		{"edit to a longer sliding sum whose credits live shorter", 2, fleetOf(quarter, 2, func(*fleet) {},
			sliding(2, whole, half+quarter), sliding(2, whole+quarter, quarter))},
		{"edit from a window to a bucket", 3, fleetOf(quarter, 3, ahead, fixed(3, whole), bucket(2, 3, half))},
		{"edit from a bucket to a sliding sum", 3, fleetOf(quarter, 2, ahead, bucket(2, 2, half), sliding(2, whole, half))},
		{"edit from a sliding sum to a window", 3, fleetOf(quarter, 3, ahead, sliding(3, whole, half), fixed(3, whole))},
		{"edit to a bucket and back", 2, fleetOf(quarter, 2, func(*fleet) {}, fixed(2, whole), bucket(2, 3, half), fixed(2, whole))},
	}
}
