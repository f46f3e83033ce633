package storetest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weir-dev/weir/pkg/limiter"
)

// testLinearizable lets several callers use one counter at once and searches for
// an order of their calls in which every answer is that of Step, and no call comes
// before one that had ended when it began.
func testLinearizable(t *testing.T, h harness) {
	const callers, calls, policies = 4, 25, 8
	rng := rand.New(rand.NewPCG(3, 4))
	since := h.now(t)
	long := h.openWindow(t)
	h.Advance(Settle)
	for i := range policies {
		p := Params(rng, []limiter.Micros{limiter.MinWindow, long})
		k := key(fmt.Sprint("history ", i))
		began := time.Now()
		histories := make([][]porcupine.Operation, callers)
		var wg sync.WaitGroup
		for caller := range callers {
			own := rand.New(rand.NewPCG(uint64(i), uint64(caller)))
			wg.Go(func() {
				var grant limiter.Result
				for range calls {
					c := Command(own, 6, grant)
					op := porcupine.Operation{ClientId: caller, Input: c, Call: time.Since(began).Nanoseconds()}
					res, err := h.Store.Apply(t.Context(), k, p, c)
					op.Output, op.Return = res, time.Since(began).Nanoseconds()
					if err != nil {
						t.Errorf("Apply: %v", err)
					}
					if histories[caller] = append(histories[caller], op); c.Op == limiter.Take && res.Granted > 0 {
						grant = res
					}
				}
			})
		}
		wg.Wait()
		var history []porcupine.Operation
		for _, own := range histories {
			history = append(history, own...)
		}
		if got := porcupine.CheckOperationsTimeout(model(p, since), history, time.Minute); got != porcupine.Ok {
			t.Errorf("%+v: a history of %d calls is %s to linearize", p, len(history), got)
		}
	}
}

// model is Step as porcupine sees it: the instant of a call is known from its
// answer.
func model(p limiter.Params, since limiter.Instant) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return limiter.State{} },
		Step: func(state, input, output any) (bool, any) {
			c, got := input.(limiter.Command), output.(limiter.Result)
			c.Memory.Since = since
			next, want := p.Step(state.(limiter.State), got.Now, c)
			return want == got, next
		},
		Equal: func(a, b any) bool { return a.(limiter.State).Equal(b.(limiter.State)) },
	}
}
