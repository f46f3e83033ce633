package policy

import (
	"net/http"
	"regexp"
	"slices"
)

// A valueMatcher compares a value: Exact, RegularExpression or Present.
type valueMatcher struct {
	kind    MatchType
	value   string
	pattern *regexp.Regexp
}

func compileValue(kind MatchType, value string) (m valueMatcher, err error) {
	m = valueMatcher{kind: kind, value: value}
	if kind == RegularExpression {
		m.pattern, err = compilePattern(value)
	}
	return m, err
}

func (m *valueMatcher) matches(value string) bool {
	switch m.kind {
	case RegularExpression:
		return m.pattern.MatchString(value)
	case Present:
		return true
	default:
		return value == m.value
	}
}

type headerMatcher struct {
	valueMatcher

	name string // canonical
}

func compileHeader(h HeaderMatch) (headerMatcher, error) {
	value, err := compileValue(h.Type, h.Value)
	return headerMatcher{value, http.CanonicalHeaderKey(h.Name)}, err
}

// matches reports whether one of the header's values matches.
func (m *headerMatcher) matches(r *http.Request) bool {
	if m.name == "Host" {
		return m.valueMatcher.matches(r.Host)
	}
	return slices.ContainsFunc(r.Header[m.name], m.valueMatcher.matches)
}

// compilePattern compiles an expression that has to match the whole value.
func compilePattern(expression string) (*regexp.Regexp, error) {
	// By itself first: ")(" must not become valid between our brackets.
	if _, err := regexp.Compile(expression); err != nil {
		return nil, err
	}
	return regexp.Compile(`\A(?:` + expression + `)\z`)
}
