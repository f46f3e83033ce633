package policy

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// claimAt returns the claim at a path, nil when there is none. The names of nested
// claims are joined by dots, and a name that has dots itself goes before.
func claimAt(claims map[string]any, path string) any {
	if value, ok := claims[path]; ok {
		return value
	}
	for i := range len(path) {
		if path[i] != '.' {
			continue
		}
		if nested, ok := claims[path[:i]].(map[string]any); ok {
			if value := claimAt(nested, path[i+1:]); value != nil {
				return value
			}
		}
	}
	return nil
}

// claimText returns what a claim of one value is compared and counted by: a string, a
// number as it is written, true or false. Lists and objects have no such text.
func claimText(claim any) (string, bool) {
	switch value := claim.(type) {
	case string:
		return value, true
	case json.Number:
		return value.String(), true
	case bool:
		return strconv.FormatBool(value), true
	default:
		return "", false
	}
}

// A claimMatcher compares a claim of a token.
type claimMatcher struct {
	namedMatcher

	header string // canonical
}

func compileClaim(m ClaimMatch) (claimMatcher, error) {
	value, err := compileValue(m.Type, m.Value)
	return claimMatcher{namedMatcher{value, m.Claim}, http.CanonicalHeaderKey(m.Header)}, err
}

// matches reports whether the claim, or one of the entries of a claim that is a list,
// matches.
func (m *claimMatcher) matches(claims map[string]any) bool {
	claim := claimAt(claims, m.name)
	if claim == nil {
		return false
	}
	if m.kind == Present {
		return true
	}
	if list, ok := claim.([]any); ok {
		return slices.ContainsFunc(list, m.matchesText)
	}
	return m.matchesText(claim)
}

func (m *claimMatcher) matchesText(claim any) bool {
	text, ok := claimText(claim)
	return ok && m.valueMatcher.matches(text)
}

func (p *problems) claim(path, value string) {
	if value == "" || len(value) > maxPattern || strings.HasPrefix(value, ".") || strings.HasSuffix(value, ".") {
		p.add(path, "is %q: write the path of a claim such as sub or realm.roles, of at most %d bytes", value, maxPattern)
	}
}
