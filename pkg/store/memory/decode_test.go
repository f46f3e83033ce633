package memory

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestDecodeRefusesStatesThatNoStepMade encodes a state that is well-formed and
// makes no sense.
func TestDecodeRefusesStatesThatNoStepMade(t *testing.T) {
	p := limiter.Params{Rates: []limiter.Rate{{Limit: 1, Window: limiter.Second}}}
	s, _ := p.Step(limiter.State{}, 1_800_000_000_000_000, limiter.Command{Min: 1, Want: 1})
	for name, change := range map[string]func(*limiter.State){
		"a burst of a window": func(s *limiter.State) { s.Meters[0].Burst = 2 },
		"a window to come":    func(s *limiter.State) { s.Meters[0].Index = 1 << 50 },
	} {
		bad := s
		change(&bad)
		data, _, err := (&Ledger{counters: []*counter{{State: bad}}}).encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(data); err == nil || !strings.Contains(err.Error(), "state: meters[0]") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}
