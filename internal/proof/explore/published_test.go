package explore_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A size is one configuration of the two models that are published: holders, the
// limit, and units a lease asks for, which it gets in full or not at all.
type size struct {
	holders      int
	limit, batch int64
}

func (s size) String() string {
	return fmt.Sprintf("%d holders, limit %d, batch %d", s.holders, s.limit, s.batch)
}

// published are the figures that a search of these models has to find, as
// published for ThrottleKit and found by TLC in the modules of spec/.
var published = []struct {
	size
	carried, coupled figures
}{
	{size{2, 4, 2}, figures{31, 6, 9}, figures{8, 4, 4}},
	{size{3, 6, 3}, figures{441, 12, 17}, figures{27, 6, 6}},
	{size{5, 10, 2}, figures{992, 15, 21}, figures{112, 10, 10}},
}

type figures struct {
	states int   // abstract ones
	most   int64 // that one window admits
	steps  int   // of the shortest history that admits the most
}

// windowFleet returns the published model: one fixed window, requests of cost 1,
// leases that take no time.
func windowFleet(s size, carry bool) *fleet {
	p := limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: s.limit, Window: limiter.MinWindow}}}
	f := &fleet{
		holders: s.holders, policies: []limiter.Params{p}, costs: []int64{1}, batch: s.batch, whole: true,
		carry: carry, tick: limiter.MinWindow, rules: production(), audit: auditWindows(p, 0), bound: 100_000,
	}
	if carry {
		f.audit = auditWindows(p, int64(s.holders)*(s.batch-1))
	}
	return f
}

// measure searches a fleet that has to keep its promise, and returns the figures
// of the abstract states: what is left in the store, the credits of each holder,
// and what the open window has admitted.
func measure(t *testing.T, f *fleet) figures {
	t.Helper()
	abstract := map[string]bool{}
	var got figures
	explore.Hold(t, f.model(), func(w world) {
		a := f.abstract(&w)
		got.most = max(got.most, a[1])
		var id []byte
		for _, v := range a {
			id = binary.AppendVarint(id, v)
		}
		abstract[string(id)] = true
	})
	got.states, got.steps = len(abstract), tightest(t, f)
	return got
}

// tightest refutes that one unit less could be promised, and returns the length of
// the shortest history that does.
func tightest(t *testing.T, f *fleet) int {
	t.Helper()
	lower := *f
	lower.spare = 1
	return explore.Refute(t, lower.model())
}

func (f *fleet) abstract(w *world) []int64 {
	left := f.policies[0].Rates[0].Limit
	for _, v := range w.stores[0].state.Slice() {
		if v.WindowAt(f.now(w)).Index == v.Index {
			left -= v.Used
		}
	}
	var spent int64
	for _, b := range w.audit.(windowAudit).open() {
		spent = b.admitted
	}
	a := []int64{left, spent}
	for n := range w.holders {
		f.carryOver(w, n)
		a = append(a, w.holders[n].hand.Front.Held(f.mono(w, n)))
	}
	return a
}

func TestPublishedStatesAreReached(t *testing.T) {
	for _, p := range published {
		t.Run(p.String(), func(t *testing.T) {
			if got := measure(t, windowFleet(p.size, true)); got != p.carried {
				t.Errorf("carried over: %+v, want %+v", got, p.carried)
			}
			if got := measure(t, windowFleet(p.size, false)); got != p.coupled {
				t.Errorf("coupled: %+v, want %+v", got, p.coupled)
			}
		})
	}
}

// TestCouplingMakesTheFleetsSizeIrrelevant sets the two models side by side while
// the fleet grows.
func TestCouplingMakesTheFleetsSizeIrrelevant(t *testing.T) {
	for _, holders := range []int{1, 2, 4, 8} {
		t.Run(fmt.Sprintf("%d holders", holders), func(t *testing.T) {
			s := size{holders, 8, 2}
			for carry, want := range map[bool]int64{true: 8 + int64(holders), false: 8} {
				f := windowFleet(s, carry)
				f.alike = true
				if got := measure(t, f).most; got != want {
					t.Errorf("carry-over %v: at most %d admitted, want %d", carry, got, want)
				}
			}
		})
	}
}

// returning are the figures of coupled holders that give back.
var returning = []struct {
	size
	figures
}{
	{size{3, 6, 3}, figures{43, 6, 6}},
	{size{5, 10, 2}, figures{192, 10, 10}},
	{size{4, 12, 4}, figures{499, 12, 12}},
}

func TestReturnsAreNotAdmittedTwice(t *testing.T) {
	for _, tc := range returning {
		t.Run(tc.String(), func(t *testing.T) {
			f := windowFleet(tc.size, false)
			f.returns = true
			if got := measure(t, f); got != tc.figures {
				t.Errorf("%+v, want %+v", got, tc.figures)
			}
		})
	}
}

// TestBatchOfOneCarriesNothing finds both models alike.
func TestBatchOfOneCarriesNothing(t *testing.T) {
	for _, carry := range []bool{true, false} {
		if got := measure(t, windowFleet(size{3, 5, 1}, carry)).most; got != 5 {
			t.Errorf("carry-over %v: at most %d admitted, want 5", carry, got)
		}
	}
}
