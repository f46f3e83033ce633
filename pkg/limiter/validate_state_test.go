package limiter_test

import (
	"slices"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

func TestValidateState(t *testing.T) {
	now := limiter.Instant(1_790_000_000_000_000)
	second := rate(10, limiter.Second)
	made := func(p limiter.Params) limiter.State {
		p.Generation = 3
		s, _ := p.Step(limiter.State{}, now, limiter.Command{Min: 1, Want: 5, Tenant: "a"})
		return s
	}
	window := made(limiter.Params{Rates: []limiter.Rate{second, rate(5, limiter.MaxWindow)}})
	fair := made(limiter.Params{Rates: []limiter.Rate{second}, Fairness: limiter.Fairness{Default: 1}})
	sliding := made(limiter.Params{Algorithm: limiter.SlidingLog, Rates: []limiter.Rate{second}, Lifetime: limiter.Second})
	bucket := made(limiter.Params{Algorithm: limiter.TokenBucket, Rates: []limiter.Rate{second}})
	damaged := func(s limiter.State, change func(*limiter.State)) limiter.State {
		s.Tenants = slices.Clone(s.Tenants)
		for i := range s.Slice() {
			s.Meters[i].Log = slices.Clone(s.Meters[i].Log)
		}
		change(&s)
		return s
	}
	entry := limiter.Entry{At: now, Count: 1}
	for name, c := range map[string]struct {
		state limiter.State
		want  string
	}{
		"windows":                       {window, ""},
		"tenants":                       {fair, ""},
		"a sliding log":                 {sliding, ""},
		"a bucket":                      {bucket, ""},
		"no meters":                     {limiter.State{}, "1 to 4 meters"},
		"an unknown algorithm":          {damaged(window, func(s *limiter.State) { s.Algorithm = 9 }), "algorithm is 9"},
		"a negative generation":         {damaged(window, func(s *limiter.State) { s.Generation = -1 }), "generation is -1"},
		"an expiry in no time":          {damaged(sliding, func(s *limiter.State) { s.Expires = -1 }), "expires is -1"},
		"an edit in no time":            {damaged(sliding, func(s *limiter.State) { s.Began = 1 << 60 }), "began is"},
		"two meters of the same window": {damaged(window, func(s *limiter.State) { s.Meters[1] = s.Meters[0] }), "rates[1].window equals"},
		"a limit of nothing":            {damaged(window, func(s *limiter.State) { s.Meters[0].Limit = 0 }), "meters[0]: rate.limit is 0"},
		"a burst of a window":           {damaged(window, func(s *limiter.State) { s.Meters[0].Burst = 3 }), "no burst"},
		"a window in no time":           {damaged(window, func(s *limiter.State) { s.Meters[0].Index = 1 << 52 }), "index is"},
		"use below nothing":             {damaged(window, func(s *limiter.State) { s.Meters[0].Used = -1 }), "used is -1"},
		"a log of a window":             {damaged(window, func(s *limiter.State) { s.Meters[0].Log = []limiter.Entry{entry} }), "has no log"},
		"a log out of order":            {damaged(sliding, func(s *limiter.State) { s.Meters[0].Log = append(s.Meters[0].Log, entry) }), "log[1].at"},
		"an entry of nothing":           {damaged(sliding, func(s *limiter.State) { s.Meters[0].Log[0].Count = 0 }), "log[0].count is 0"},
		"more than can be counted":      {damaged(sliding, func(s *limiter.State) { s.Meters[0].Log[0].Count = limiter.MaxExact + 1 }), "log[0].count"},
		"a log that is too long":        {damaged(sliding, func(s *limiter.State) { s.Meters[0].Log = make([]limiter.Entry, limiter.MaxLog+1) }), "1025 entries"},
		"a level that cannot be exact":  {damaged(bucket, func(s *limiter.State) { s.Meters[0].Rate = rate(limiter.MaxLimit-1, limiter.MaxWindow) }), "counted exactly"},
		"a level in no time":            {damaged(bucket, func(s *limiter.State) { s.Meters[0].Index = -1 }), "index is -1"},
		"tenants out of order":          {damaged(fair, func(s *limiter.State) { s.Tenants = append(s.Tenants, s.Tenants[0]) }), "tenants[1] is out of order"},
		"a tenant's use below nothing":  {damaged(fair, func(s *limiter.State) { s.Tenants[0].Used = -2 }), "tenants[0].used is -2"},
		"tenants of two windows":        {damaged(window, func(s *limiter.State) { s.Tenants = []limiter.TenantUse{{}} }), "share one window"},
		"tenants without end":           {damaged(fair, func(s *limiter.State) { s.Tenants = make([]limiter.TenantUse, 2000) }), "2000 tenants"},
	} {
		checkError(t, name, c.state.Validate(), c.want)
	}
}

func TestValidateWhatBelongsToAnAlgorithm(t *testing.T) {
	weights := func(list ...limiter.Weight) limiter.Fairness { return limiter.Fairness{Weights: list, Default: 1} }
	second := []limiter.Rate{rate(1, limiter.Second)}
	for name, c := range map[string]struct {
		params limiter.Params
		want   string
	}{
		"nothing declared":         {limiter.Params{Rates: second, Fairness: weights()}, ""},
		"the bounds of weights":    {limiter.Params{Rates: second, Fairness: limiter.Fairness{Default: limiter.MaxWeight, Weights: []limiter.Weight{{Tenant: "a", Weight: 1}, {Tenant: "b", Weight: limiter.MaxWeight}}}}, ""},
		"a weight of nothing":      {limiter.Params{Rates: second, Fairness: weights(limiter.Weight{Tenant: "a"})}, "fairness.weights[0].weight is 0"},
		"a weight too large":       {limiter.Params{Rates: second, Fairness: weights(limiter.Weight{Tenant: "a", Weight: limiter.MaxWeight + 1})}, "fairness.weights[0].weight"},
		"no default":               {limiter.Params{Rates: second, Fairness: limiter.Fairness{Weights: []limiter.Weight{{Tenant: "a", Weight: 1}}}}, "fairness.default is 0"},
		"a tenant twice":           {limiter.Params{Rates: second, Fairness: weights(limiter.Weight{Tenant: "a", Weight: 1}, limiter.Weight{Tenant: "a", Weight: 2})}, "order the weights by tenant"},
		"a tenant that is not one": {limiter.Params{Rates: second, Fairness: weights(limiter.Weight{Tenant: limiter.OtherTenants, Weight: 1})}, "not distinguished"},
		"too many tenants":         {limiter.Params{Rates: second, Fairness: weights(make([]limiter.Weight, limiter.MaxDeclared+1)...)}, "declares 65 tenants"},
		"two rates":                {limiter.Params{Rates: append(second, rate(2, limiter.Second*2)), Fairness: weights()}, "one rate"},
		"no windows":               {limiter.Params{Algorithm: limiter.GCRA, Rates: second, Fairness: weights()}, "needs FixedWindow"},
		"two rates of one queue":   {limiter.Params{Algorithm: limiter.LeakyBucket, Rates: append(second, rate(2, limiter.Second*2))}, "keep the slowest"},
		"buckets of a log":         {limiter.Params{Algorithm: limiter.SlidingLog, Rates: second, Buckets: 3}, "buckets is 3, but it belongs to SlidingWindow"},
		"no buckets":               {limiter.Params{Algorithm: limiter.SlidingWindow, Rates: second}, "buckets is 0, outside 1 to 1000"},
		"a wait of a log":          {limiter.Params{Algorithm: limiter.SlidingLog, Rates: second, MaxDelay: 1}, "maxDelay is 1, but it belongs to LeakyBucket"},
		"a lifetime of a window":   {limiter.Params{Rates: second, Lifetime: 1}, "FixedWindow does not grant in advance"},
		"a lifetime of a queue":    {limiter.Params{Algorithm: limiter.LeakyBucket, Rates: second, Lifetime: 1}, "LeakyBucket does not grant in advance"},
		"a lifetime of all":        {limiter.Params{Algorithm: limiter.GCRA, Rates: second, Lifetime: limiter.Second}, "spent on the lifetime"},
		"a burst of a window":      {limiter.Params{Rates: []limiter.Rate{{Limit: 1, Window: limiter.Second, Burst: 2}}}, "FixedWindow has no burst"},
		"months of a log":          {limiter.Params{Algorithm: limiter.SlidingLog, Rates: []limiter.Rate{{Limit: 1, Window: limiter.MaxWindow, Monthly: true}}}, "no aligned windows"},
		"months of a second":       {limiter.Params{Rates: []limiter.Rate{{Limit: 1, Window: limiter.Second, Monthly: true}}}, "but months have"},
		"an offset of nine days":   {limiter.Params{Rates: []limiter.Rate{{Limit: 1, Window: limiter.Second, Offset: 9 * limiter.Day}}}, "more than 8 days"},
		"a level beyond exact":     {limiter.Params{Algorithm: limiter.GCRA, Rates: []limiter.Rate{rate(limiter.MaxLimit-1, limiter.MaxWindow)}}, "divides the window evenly"},
		"an unknown algorithm":     {limiter.Params{Algorithm: 9, Rates: second}, "algorithm is 9"},
		"windows that are shifted": {limiter.Params{Rates: []limiter.Rate{rate(1, limiter.Day), {Limit: 2, Window: limiter.Day, Offset: 1}}}, ""},
	} {
		checkError(t, name, c.params.Validate(), c.want)
	}
}
