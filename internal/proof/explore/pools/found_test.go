package pools_test

import (
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
)

// found is what searches of a published model found.
type found struct {
	states int   // of the module's variables
	most   int64 // in flight at once
	steps  int   // of the shortest history to the bound, or beyond it
}

// survey visits all states of a model, and fails when one breaks it. Those with the same
// abstract ones count as one. It returns the depth too.
func survey[S, A any](t *testing.T, m explore.Model[S, A], abstract func(*encoder, S), inflight func(S) int64) (f found, depth int) {
	t.Helper()
	var e encoder
	states := map[string]struct{}{}
	r := explore.Hold(t, m, func(s S) {
		e = e[:0]
		abstract(&e, s)
		states[string(e)] = struct{}{}
		f.most = max(f.most, inflight(s))
	})
	f.states = len(states)
	return f, r.Depth
}
