package explore_test

import "github.com/weir-dev/weir/pkg/limiter"

// windowModels are those of fixed windows.
func windowModels() []model {
	once, late := fixed(5, whole), fixed(3, whole)
	twoRates := with(fixed(2, whole), func(p *limiter.Params) {
		p.Rates = append(p.Rates, limiter.Rate{Limit: 3, Window: 2 * whole})
	})
	return []model{
		{"partial grants, 1 holder", 5, fleetOf(half, 3, func(f *fleet) { f.holders = 1 }, once)},
		{"partial grants, 2 holders", 5, fleetOf(half, 3, func(*fleet) {}, once)},
		{"partial grants, 4 holders", 5, fleetOf(half, 3, func(f *fleet) { f.holders = 4 }, once)},
		{"partial grants, 8 holders", 5, fleetOf(half, 3, func(f *fleet) { f.holders = 8 }, once)},
		{"costs above 1", 2, fleetOf(half, 3, func(f *fleet) { f.costs = []int64{1, 2, 4} }, fixed(6, whole))},
		{"late and lost messages", 9, fleetOf(half, 2, func(f *fleet) { f.late, f.lost = true, true }, late)},
		{"late messages, 4 holders", 9, fleetOf(whole, 2, func(f *fleet) { f.late, f.holders = true, 4 }, late)},
		{"late returns", 5, fleetOf(half, 2, func(f *fleet) { f.late, f.returns = true, true }, fixed(2, whole))},
		{"late and lost returns, 1 holder", 5, fleetOf(half, 2, func(f *fleet) { f.holders, f.late, f.lost, f.returns = 1, true, true, true }, fixed(2, whole))},
		{"cancelled requests", 9, fleetOf(half, 2, func(f *fleet) { f.late, f.cancels = true, true }, late)},
		{"leases ahead of need", 10, fleetOf(half, 2, func(f *fleet) { f.late, f.lowWater = true, 1 }, fixed(4, whole))},
		{"two rates", 5, fleetOf(half, 2, func(f *fleet) { f.late = true }, twoRates)},
		{"guided grants, 4 holders", 6, fleetOf(half, 4, func(f *fleet) { f.guided, f.holders = true, 4 }, fixed(6, whole))},
		{"guided grants, late", 7, fleetOf(whole, 4, func(f *fleet) { f.guided, f.late = true, true }, fixed(4, whole))},

		{"fairness, 3 tenants", 4, fairFleet()},

		{"the store forgets", 9, fleetOf(half, 2, func(f *fleet) { f.late, f.restarts = true, 2 }, late)},
		{"the store drops idle keys", 9, fleetOf(half, 2, func(f *fleet) { f.late, f.expires = true, true }, late)},
		{"the store's clock steps back", 3, fleetOf(half, 2, func(f *fleet) {
			f.lowWater, f.expires, f.stepBack = 1, true, 2
			f.audit = chargeAudit{limit: 3, latest: int64(epoch) / int64(whole)}
		}, late)},
		{"the store forgets and its clock steps back", 2, forgettingFleet(func(*fleet) {})},
		{"the store forgets and its clock steps back, and is set right at once, 1 holder", 2, forgettingFleet(alone)},
		{"the store's clock runs ahead for a while", 2, jumpingFleet(func(*fleet) {})},
		{"another store takes over", 5, fleetOf(whole, 2, func(f *fleet) { f.late, f.moves, f.returns = true, true, true }, fixed(2, whole))},

		{"the limit is edited", 5, fleetOf(half, 2, func(f *fleet) { f.late = true }, fixed(2, whole), fixed(1, whole), fixed(3, whole))},
		{"the window is edited", 3, fleetOf(half, 2, func(f *fleet) { f.lowWater = 1 }, late, fixed(2, whole+half), late)},

		{"carry-over", 19, fleetOf(half, 2, func(f *fleet) {
			f.late, f.carry, f.returns = true, true, true
			f.audit = auditWindows(f.policies[0], 2)
		}, late)},
		{"carry-over with leases ahead of need", 22, fleetOf(half, 2, func(f *fleet) {
			f.late, f.carry, f.lowWater = true, true, 1
			f.audit = auditWindows(f.policies[0], 4)
		}, fixed(4, whole))},
	}
}

// fairFleet splits a limit over two declared tenants and one that is not.
func fairFleet() *fleet {
	split := with(fixed(4, whole), func(p *limiter.Params) {
		p.Fairness = limiter.Fairness{Default: 1, Weights: []limiter.Weight{{Tenant: "gold", Weight: 2}, {Tenant: "silver", Weight: 1}}, Reserve: true}
	})
	return fleetOf(whole, 2, func(f *fleet) {
		f.holders, f.alike, f.returns = 3, false, true
		f.tenants = []tenant{{"gold", 2}, {"silver", 1}, {"other", 0}}
	}, split)
}

// forgettingFleet has a store that forgets everything and a clock that steps back, in
// either order, and holders that know what the clock had shown.
func forgettingFleet(change func(*fleet)) *fleet {
	return fleetOf(half, 2, func(f *fleet) {
		f.floors, f.restarts, f.stepBack = true, 1, 1
		f.audit = chargeAudit{limit: 2, latest: int64(epoch) / int64(whole)}
		change(f)
	}, fixed(2, whole))
}

// alone has one holder, which is the only one that can know what was granted when the clock
// is right again before anybody has asked.
func alone(f *fleet) { f.holders, f.right = 1, true }

// jumpingFleet has a store whose clock runs ahead and is set right, and that drops by it
// what seems to be over.
func jumpingFleet(change func(*fleet)) *fleet {
	return fleetOf(whole, 2, func(f *fleet) {
		f.jumps, f.expires = 3, true
		f.audit = chargeAudit{limit: 2, latest: int64(epoch) / int64(whole), keep: 5}
		change(f)
	}, fixed(2, whole))
}
