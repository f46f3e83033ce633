package explore

import (
	"fmt"
	"iter"
)

// A Model is a state machine and what must hold of it. S is its state, a value
// that is not written to once it was yielded; A names what happened, for traces.
type Model[S, A any] struct {
	// Init are the states in which it may begin.
	Init []S
	// Next yields all that can happen in a state and the states that follow.
	Next func(S) iter.Seq2[A, S]
	// Encode appends to b what distinguishes a state from others. States with equal
	// encodings must allow the same futures: of each such class one is searched.
	Encode func(b []byte, s S) []byte
	// Check returns what is wrong with a state, nil when nothing is.
	Check func(S) error
	// Bound is the most classes the model may have, so that a mistake in it ends.
	Bound int
}

// A Report says what a search found.
type Report[S, A any] struct {
	States      int // classes of states that can be reached
	Transitions int // that were followed, those that lead back included
	Depth       int // the most steps that are needed to reach a state

	// Counterexample is nil when every state passed the check. Otherwise the search
	// ended with it, and the figures above are those up to there.
	Counterexample *Counterexample[S, A]
}

// A Counterexample is a shortest way to a state that fails the check.
type Counterexample[S, A any] struct {
	Trace  []A
	State  S
	Broken error
}

// String prints the history, one step a line.
func (c *Counterexample[S, A]) String() string {
	var b []byte
	for i, a := range c.Trace {
		b = fmt.Appendf(b, "%3d  %v\n", i+1, a)
	}
	return string(fmt.Appendf(b, "     %v", c.Broken))
}

// TooLargeError is the error of a search that did not end within Model.Bound.
type TooLargeError struct{ Bound int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("more than %d states can be reached: make the model smaller or raise its bound", e.Bound)
}

// Search visits every state of m that can be reached, those first that are reached
// in the fewest steps, and calls visit, if any, once for each. It ends at the
// first state that fails the check.
func Search[S, A any](m Model[S, A], visit func(S)) (Report[S, A], error) {
	x := search[S, A]{model: m, visit: visit, seen: make(map[string]struct{})}
	for _, s := range m.Init {
		if x.reach(s, node[A]{parent: -1}) {
			return x.report, x.err
		}
	}
	for depth := 0; len(x.frontier) > 0; depth++ {
		x.report.Depth = depth
		layer := x.frontier
		x.frontier = nil
		for _, at := range layer {
			for what, s := range m.Next(at.state) {
				x.report.Transitions++
				if x.reach(s, node[A]{parent: at.id, what: what}) {
					return x.report, x.err
				}
			}
		}
	}
	return x.report, nil
}

type search[S, A any] struct {
	model    Model[S, A]
	visit    func(S)
	seen     map[string]struct{}
	nodes    []node[A] // how each state was reached first
	frontier []visited[S]
	scratch  []byte
	report   Report[S, A]
	err      error
}

// A node is how a state was reached first. Its states are not kept: a trace needs
// only what happened.
type node[A any] struct {
	parent int // -1 for an initial state
	what   A
}

type visited[S any] struct {
	id    int
	state S
}

// reach notes a state unless it is known, and reports whether the search is over.
func (x *search[S, A]) reach(s S, n node[A]) bool {
	x.scratch = x.model.Encode(x.scratch[:0], s)
	if _, known := x.seen[string(x.scratch)]; known {
		return false
	}
	x.seen[string(x.scratch)] = struct{}{}
	id := len(x.nodes)
	x.nodes = append(x.nodes, n)
	x.frontier = append(x.frontier, visited[S]{id, s})
	x.report.States++
	if x.visit != nil {
		x.visit(s)
	}
	if err := x.model.Check(s); err != nil {
		x.report.Counterexample = &Counterexample[S, A]{Trace: x.trace(id), State: s, Broken: err}
		return true
	}
	if x.report.States > x.model.Bound {
		x.err = &TooLargeError{Bound: x.model.Bound}
		return true
	}
	return false
}

// trace returns what happened up to a node.
func (x *search[S, A]) trace(id int) []A {
	n := x.nodes[id]
	if n.parent < 0 {
		return nil
	}
	return append(x.trace(n.parent), n.what)
}
