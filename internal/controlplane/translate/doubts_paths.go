package translate

import (
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/pkg/policy"
)

// encodedPaths warns of paths of a match that are written as in a URL. One that is decoded
// matches, however the client writes it.
func encodedPaths(path *field.Path, matches []policy.Match) []string {
	var warnings []string
	for i, m := range matches {
		for j, p := range m.Paths {
			if p.Type != policy.RegularExpression && strings.Contains(p.Value, "%") {
				warnings = append(warnings, warn(path.Index(i).Child("paths").Index(j).Child("value"),
					"paths are compared decoded, so %% stands for itself: write the character that %q encodes", p.Value))
			}
		}
	}
	return warnings
}

// halfExempt warns of paths of an exemption that are there in one spelling only: it counts if
// each reading of a path has an entry, and both what is sent and what it stands for are
// readings.
func halfExempt(path *field.Path, matches []policy.Match) []string {
	var warnings []string
	for i, m := range matches {
		for j, p := range m.Paths {
			other := p
			other.Value = otherSpelling(p.Value)
			if p.Type == policy.RegularExpression || slices.ContainsFunc(matches, func(m policy.Match) bool { return slices.Contains(m.Paths, other) }) {
				continue
			}
			warnings = append(warnings, warn(path.Index(i).Child("paths").Index(j).Child("value"),
				"clients can send this path only escaped, and it is exempt only if both spellings are: add %q", other.Value))
		}
	}
	return warnings
}

// otherSpelling returns a path as it is sent, or as an app decodes it if it has escapes. It is
// the same where nothing has to be escaped.
func otherSpelling(path string) string {
	if decoded, err := url.PathUnescape(path); err == nil && decoded != path {
		return decoded
	}
	return (&url.URL{Path: path}).EscapedPath()
}
