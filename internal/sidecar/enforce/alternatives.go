package enforce

import (
	"context"

	"github.com/weir-dev/weir/pkg/policy"
)

// alternatives are a group of limits, in the order in which they are asked. One has to admit a
// request; mostly there is a single one. Either all are in shadow or none is.
type alternatives []*limit

func (a alternatives) shadow() bool { return a[0].shadow }

// ask asks the limits until one admits the request, and returns taken with what that took. The
// refusals of those that were asked before do not count then, since the request passes. The
// refusal is that of the limit that may admit it soonest.
func (a alternatives) ask(ctx context.Context, e *Enforcer, r *policy.Request, taken []share) ([]share, *Refusal, error) {
	var few [4]answer
	refused := few[:0]
	for _, l := range a {
		if !l.applies(r) {
			continue
		}
		said, err := l.ask(ctx, r)
		if err = e.undecided(ctx, l, err); err != nil {
			forget(refused)
			return taken, nil, err
		}
		switch {
		case !said.admits():
			refused = append(refused, said)
		case said.limit != nil:
			forget(refused)
			return append(taken, said.share), nil, nil
		}
	}
	var soonest *Refusal
	for i := range refused {
		s, refusal := refused[i].judge()
		if s.limit != nil {
			taken = append(taken, s) // in shadow
		}
		soonest = sooner(soonest, refusal)
	}
	return taken, soonest, nil
}

// rule asks the limits about the descriptors of a call, until one admits all that it covers, and
// notes what they say.
func (a alternatives) rule(ctx context.Context, e *Enforcer, c *call, ruling *Ruling, taken []share) ([]share, error) {
	var refused []answer // all that limits said that did not admit all
	for _, l := range a {
		if !c.in.covers(l.Policy) {
			continue
		}
		said, admits, err := l.rule(ctx, e, c)
		if err != nil {
			forget(said)
			forget(refused)
			return taken, err
		}
		if admits && len(said) > 0 {
			forget(refused)
			refused = said
			break
		}
		refused = append(refused, said...)
	}
	for i := range refused {
		s, refusal := refused[i].judge()
		ruling.note(refused[i].of, s, refusal)
		if s.limit != nil && s.cost > 0 {
			taken = append(taken, s)
		}
	}
	return taken, nil
}

// rule asks the limit about all descriptors of a call, and reports whether it admits those that
// it covers.
func (l *limit) rule(ctx context.Context, e *Enforcer, of *call) (said []answer, admits bool, err error) {
	admits = true
	for _, c := range l.charges(of.descriptors) {
		got, err := l.charge(ctx, c, of.held)
		if err = e.undecided(ctx, l, err); err != nil {
			return said, false, err
		}
		if got.limit == nil {
			continue // it did not decide, in shadow
		}
		admits = admits && got.admits()
		said = append(said, got)
	}
	return said, admits, nil
}

// forget takes back what limits said that does not count.
func forget(said []answer) {
	for i := range said {
		said[i].forget()
	}
}

// sooner returns the refusal whose request may be admitted sooner, or the one that is there.
func sooner(a, b *Refusal) *Refusal {
	switch {
	case a == nil:
		return b
	case b == nil || a.wait() <= b.wait():
		return a
	default:
		return b
	}
}
