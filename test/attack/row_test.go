package main

import "testing"

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		must   must
		answer string
		good   bool
	}{
		"all parts":                {be("", "a", "b"), "b a", true},
		"a part is missing":        {be("", "a", "b"), "a", false},
		"a part that must not be":  {be("", "a").without("b"), "a b", false},
		"one of several":           {or("", "a", "b"), "b", true},
		"none of several":          {or("", "a", "b"), "c", false},
		"one, and one that is not": {or("", "a", "b").without("c"), "a c", false},
	} {
		if err := tc.must.judge(tc.answer); (err == nil) != tc.good {
			t.Errorf("%s: error %v, want none: %t", name, err, tc.good)
		}
	}
}

// TestWithoutChangesNoOther: rows share a must.
func TestWithoutChangesNoOther(t *testing.T) {
	first := be("", "a").without("b")
	_ = first.without("c")
	if err := first.judge("a c"); err != nil {
		t.Error(err)
	}
}
