package policy

import (
	"iter"
	"strings"
)

// parameters yields the parameters of a query, decoded, in their order, as the URL
// Standard reads forms (application/x-www-form-urlencoded parsing): a percent sign that
// begins no escape stays. An app that reads fewer refuses what it is sent.
func parameters(query string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for pair := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(pair, "=")
			if pair != "" && !yield(unescape(name), unescape(value)) {
				return
			}
		}
	}
}

func unescape(s string) string { return decode(strings.ReplaceAll(s, "+", " ")) }

// A namedMatcher compares the values of a parameter or a claim.
type namedMatcher struct {
	valueMatcher

	name string
}

func compileQuery(q QueryMatch) (namedMatcher, error) {
	value, err := compileValue(q.Type, q.Value)
	return namedMatcher{value, q.Name}, err
}

// matchesQuery reports whether one of the parameter's values matches.
func (m *namedMatcher) matchesQuery(query string) bool {
	for name, value := range parameters(query) {
		if name == m.name && m.valueMatcher.matches(value) {
			return true
		}
	}
	return false
}

// parameter returns the first value of a parameter, empty when the query lacks it, and
// whether it has others that differ.
func parameter(query, wanted string) (first string, others bool) {
	found := false
	for name, value := range parameters(query) {
		switch {
		case name != wanted:
		case !found:
			first, found = value, true
		case value != first:
			return first, true
		}
	}
	return first, false
}
