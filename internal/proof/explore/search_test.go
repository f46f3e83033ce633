package explore_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/proof/explore"
)

// jugs is the riddle of the two jugs of 3 and 5 litres, whose answer is known.
func jugs(bound int, forbidden int) explore.Model[[2]int, string] {
	return explore.Model[[2]int, string]{
		Init: [][2]int{{0, 0}},
		Next: func(s [2]int) iter.Seq2[string, [2]int] {
			pour := min(s[0], 5-s[1])
			back := min(s[1], 3-s[0])
			return func(yield func(string, [2]int) bool) {
				_ = yield("fill 3", [2]int{3, s[1]}) &&
					yield("fill 5", [2]int{s[0], 5}) &&
					yield("empty 3", [2]int{0, s[1]}) &&
					yield("empty 5", [2]int{s[0], 0}) &&
					yield("3 to 5", [2]int{s[0] - pour, s[1] + pour}) &&
					yield("5 to 3", [2]int{s[0] + back, s[1] - back})
			}
		},
		Encode: func(b []byte, s [2]int) []byte {
			return binary.AppendVarint(binary.AppendVarint(b, int64(s[0])), int64(s[1]))
		},
		Check: func(s [2]int) error {
			if s[1] == forbidden {
				return fmt.Errorf("there are %d litres", forbidden)
			}
			return nil
		},
		Bound: bound,
	}
}

func TestSearchVisitsEveryState(t *testing.T) {
	visits := 0
	r, err := explore.Search(jugs(100, -1), func([2]int) { visits++ })
	if err != nil || r.Counterexample != nil {
		t.Fatalf("err %v, counterexample %v", err, r.Counterexample)
	}
	// The riddle's states are those in which a jug is full or empty.
	if want := 16; r.States != want || visits != want {
		t.Errorf("%d states, %d visits, want %d", r.States, visits, want)
	}
	if want := 16 * 6; r.Transitions != want {
		t.Errorf("%d transitions, want %d", r.Transitions, want)
	}
}

func TestSearchFindsTheShortestCounterexample(t *testing.T) {
	r, err := explore.Search(jugs(100, 4), nil)
	if err != nil || r.Counterexample == nil {
		t.Fatalf("err %v, no counterexample", err)
	}
	want := []string{"fill 5", "5 to 3", "empty 3", "5 to 3", "fill 5", "5 to 3"}
	if diff := cmp.Diff(want, r.Counterexample.Trace); diff != "" {
		t.Errorf("trace (-want +got):\n%s", diff)
	}
	if r.Counterexample.State != [2]int{3, 4} {
		t.Errorf("state %v", r.Counterexample.State)
	}
}

func TestSearchEndsAtItsBound(t *testing.T) {
	_, err := explore.Search(jugs(10, -1), nil)
	if large, ok := errors.AsType[*explore.TooLargeError](err); !ok || large.Bound != 10 {
		t.Errorf("err %v, want a TooLargeError of 10", err)
	}
}
