package region

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A face is what a condition says of a part, which is written at once. Everything else is
// a figure, which waits.
type face struct {
	problem    budget.Problem
	term       int64
	learning   bool
	behind     bool
	verdict    audit.Verdict
	escrow     string
	full       bool // of values
	generation int64

	since time.Time // of the problem, or of there being none
	began time.Time // of the term, as far as it was seen
}

// turned reports whether the part shows another face than before.
func (p *part) turned() bool {
	s := p.stats()
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	next := face{
		problem: linkOf(s, p.seen, p.kept[0].own()).Problem, term: s.Epoch.Term, learning: s.Learning,
		behind: s.Grant.Reason == ledger.Behind, verdict: p.audit.Figures(now).Verdict, escrow: textOf(s.EscrowErr), full: p.keys().Full,
		generation: p.budget.Generation, since: p.face.since, began: p.face.began,
	}
	if next.problem != p.face.problem {
		next.since = now
	}
	if next.term != p.face.term {
		next.began = now
	}
	turned := next != p.face
	p.face = next
	return turned
}

// Observe returns what is known of the budget of a FederatedBudget. It does not block.
func (s *Set) Observe(namespace, name string) budget.Observation {
	p := s.find(types.NamespacedName{Namespace: namespace, Name: name})
	if p == nil {
		return budget.Observation{}
	}
	out := p.observe()
	out.Certificate.Problem = s.renewals.problem(p.kept[0])
	out.Further = s.observeFurther(p)
	return out
}

func (p *part) observe() budget.Observation {
	s := p.stats()
	p.mu.Lock()
	defer p.mu.Unlock()
	out := budget.Observation{
		Generation:  p.budget.Generation,
		Link:        linkOf(s, p.seen, p.kept[0].own()),
		Root:        budget.Root{Term: s.Epoch.Term, Since: p.face.began},
		Slice:       s.Slice,
		EscrowError: textOf(s.EscrowErr),
		Ledger:      p.seen.state,
		Read:        readAt(s, p.seen),
		Figures:     p.audit.Figures(time.Now()),
		Keys:        p.keys(),
	}
	out.Link.Since = p.face.since
	out.Certificate.Ends = p.ledger.certified()
	if p.kept[0].own() {
		out.Root.Member = p.member
	}
	out.Behind = s.Grant.Reason == ledger.Behind
	if s.Learning || out.Behind {
		out.Learning = s.Heard.Add(time.Duration(s.Grant.RetryAfter) * time.Microsecond)
	}
	return out
}

// keys returns what is known of the values of the budget.
func (p *part) keys() budget.Keys {
	if p.values == nil {
		return budget.Keys{}
	}
	v := p.values.Stats()
	return budget.Keys{InCluster: int64(v.Values), InUse: v.Room.Counters, Full: v.Room.Full}
}

// readAt returns when the ledger was read, on the coordinator's clock: as it returned the
// time last, carried on, and not before what the ledger itself has seen.
func readAt(s federation.Stats, seen sight) limiter.Instant {
	if seen.state == nil {
		return 0
	}
	read := seen.state.Latest
	if !s.Heard.IsZero() {
		read = max(read, s.Grant.Now.Add(limiter.Micros(seen.at.Sub(s.Heard).Microseconds())))
	}
	return read
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
