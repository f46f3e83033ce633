package replay

import (
	"slices"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// A Simulation decides requests by the limits of a set, one after the other.
type Simulation struct {
	groups []group  // in the order in which they are asked: those in shadow last
	limits []*limit // in the order of the set
	now    limiter.Instant
	swept  limiter.Instant
	late   int64
}

// A group has limits. One of them has to admit a request.
type group []*limit

// A limit is one limit and its counters.
type limit struct {
	*policy.CompiledLimit

	params    limiter.Params
	overrides map[string]limiter.Params
	shadow    bool
	counters  map[string]*limiter.State // by the value of the key
	tally     tally
}

// NewSimulation returns a simulation that has seen no request. The client's address is that of
// the log, whatever the policies say of proxies. Credits of leases have no lifetime, since
// there is one process only.
func NewSimulation(snapshot policy.Snapshot) (*Simulation, error) {
	snapshot.Policies = slices.Clone(snapshot.Policies)
	for i := range snapshot.Policies {
		if p := &snapshot.Policies[i]; p.ClientIP.TrustedHops > 0 || len(p.ClientIP.TrustedCIDRs) > 0 {
			p.ClientIP = policy.ClientIP{TrustedHops: 1} // as Entry.request names the client
		}
	}
	set, err := policy.Compile(snapshot)
	if err != nil {
		return nil, err
	}
	s := &Simulation{}
	of := make(map[*policy.CompiledLimit]*limit)
	for _, l := range set.Limits {
		params := l.Limit.Params(l.Policy)
		params.Lifetime = 0
		one := &limit{CompiledLimit: l, params: params, overrides: l.Limit.Overridden(l.Policy), shadow: l.Shadow(), counters: map[string]*limiter.State{}}
		for value, p := range one.overrides {
			p.Lifetime = 0
			one.overrides[value] = p
		}
		of[l] = one
		s.limits = append(s.limits, one)
	}
	for _, alternatives := range set.Groups() {
		var g group
		for _, l := range alternatives {
			g = append(g, of[l])
		}
		s.groups = append(s.groups, g)
	}
	slices.SortStableFunc(s.groups, func(a, b group) int {
		switch {
		case a[0].shadow == b[0].shadow:
			return 0
		case b[0].shadow:
			return -1
		default:
			return 1
		}
	})
	return s, nil
}

// sweepEvery is how often counters are dropped in which nothing counts any more.
const sweepEvery = 60 * limiter.Second

// Add decides a request. One that is older than the request before counts at the time of that.
func (s *Simulation) Add(e *Entry) error {
	r, err := e.request()
	if err != nil {
		return err
	}
	if at := limiter.Instant(e.Time.UnixMicro()); at >= s.now {
		s.now = at
	} else {
		s.late++
	}
	if s.now.Sub(s.swept) >= sweepEvery {
		s.sweep()
	}
	request := policy.NewRequest(r)
	var all []said
	for _, g := range s.groups {
		more, refused := g.ask(s.now, &request)
		all = append(all, more...)
		if refused {
			for i := range all {
				all[i].takeBack(s.now)
			}
			break
		}
	}
	for i := range all {
		all[i].count(s.now)
	}
	return nil
}

func (s *Simulation) sweep() {
	s.swept = s.now
	for _, l := range s.limits {
		for value, state := range l.counters {
			if state.KeepFor(s.now) <= 0 {
				delete(l.counters, value)
			}
		}
	}
}

// said is what one limit says of a request.
type said struct {
	limit  *limit
	value  string
	tenant string
	cost   int64
	result limiter.Result
	is     outcome
}

// ask asks the limits of a group until one admits the request. It reports whether the request is
// refused.
func (g group) ask(now limiter.Instant, r *policy.Request) (all []said, refused bool) {
	for _, l := range g {
		if !l.Matches(r) {
			continue
		}
		s := l.ask(now, r)
		switch s.is {
		case skipped:
			all = append(all, s)
			continue
		case admitted:
			for i := range all {
				if all[i].is == refusedHere || all[i].is == rejected {
					all[i].is = outvoted
				}
			}
			return append(all, s), false
		default:
			all, refused = append(all, s), !l.shadow
		}
	}
	return all, refused
}

// ask asks the limit.
func (l *limit) ask(now limiter.Instant, r *policy.Request) said {
	value, outcome, _ := l.Value(r)
	s := said{limit: l, value: value}
	switch outcome {
	case policy.Skipped:
		s.is = skipped
		return s
	case policy.Rejected:
		s.is = rejected
		return s
	case policy.Counted:
	}
	s.tenant, s.cost, s.is = l.Tenant(r), l.Cost(r), refusedHere
	s.result = s.step(now, limiter.Command{Op: limiter.Take, Min: s.cost, Want: s.cost, Tenant: s.tenant})
	if s.result.Reason == limiter.Granted {
		s.is = admitted
	}
	return s
}

// step applies a command to the counter.
func (s *said) step(now limiter.Instant, c limiter.Command) limiter.Result {
	state := s.limit.counters[s.value]
	if state == nil {
		state = &limiter.State{}
		s.limit.counters[s.value] = state
	}
	params, ok := s.limit.overrides[s.value]
	if !ok {
		params = s.limit.params
	}
	next, result := params.Step(*state, now, c)
	*state = next
	return result
}

// takeBack gives back what was granted to a request that another limit refuses.
func (s *said) takeBack(now limiter.Instant) {
	if s.is == admitted {
		s.is = outvoted
		s.step(now, limiter.Command{Op: limiter.Return, Want: s.cost, Tenant: s.tenant, Windows: s.result.Windows, At: s.result.Now})
	}
}

// count notes the outcome, when all limits have been asked.
func (s *said) count(now limiter.Instant) {
	value := s.value
	if value == policy.MissingValue() {
		value, s.limit.tally.Missing = "(missing)", s.limit.tally.Missing+1
	}
	s.limit.tally.add(s.is, value, time.UnixMicro(int64(now)).UTC())
}
