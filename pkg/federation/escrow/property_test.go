package escrow_test

import (
	"testing"
)

// TestNoWindowIsTakenTwice runs worlds in which everything goes wrong that may. The
// seed of one that fails is in its name.
func TestNoWindowIsTakenTwice(t *testing.T) {
	happened := map[string]int{}
	for seed := range uint64(150) {
		w := newWorld(seed, rules{})
		for i := range 6000 {
			if err := w.step(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, i, err)
			}
		}
		for what, n := range w.happened {
			happened[what] += n
		}
	}
	for _, what := range []string{
		"units were taken", "units were put back", "a release took units off", "an answer brought units",
		"an answer came after a release", "an answer was another escrow's", "an answer was of an older epoch",
		"the term changed in a window", "a slice opened a window", "a window was not opened",
		"the coordinator lost its memory", "an escrow lost its memory",
	} {
		if happened[what] < 100 {
			t.Errorf("%s only %d times", what, happened[what])
		}
	}
}

// TestEveryRuleOfProcessesIsNeeded breaks one rule at a time and finds that the
// bound does not hold any more.
func TestEveryRuleOfProcessesIsNeeded(t *testing.T) {
	for name, r := range map[string]rules{
		"what an answer took on its way is counted":                       {slow: true},
		"a slice is what this memory heard, of a window that began later": {eager: true, eternal: true, frail: true},
		"answers are brought to the escrow that asked":                    {mixed: true, frail: true},
		"a name is used once":                                             {namesake: true, frail: true},
		"what is given back is given back once":                           {twice: true},
	} {
		t.Run(name, func(t *testing.T) {
			if !breaks(r) {
				t.Error("the bound holds without it")
			}
		})
	}
}

func breaks(r rules) bool {
	for seed := range uint64(2000) {
		w := newWorld(seed, r)
		for range 6000 {
			if w.step() != nil {
				return true
			}
		}
	}
	return false
}
