package policy

import (
	"path"
	"regexp"
	"strings"
)

type pathMatcher struct {
	kind    MatchType
	value   string
	pattern *regexp.Regexp
}

func compilePath(p PathMatch) (m pathMatcher, err error) {
	m.kind = p.Type
	switch p.Type {
	case RegularExpression:
		m.pattern, err = compilePattern(p.Value)
	case PathPrefix:
		m.value = strings.TrimRight(cleanPath(p.Value), "/")
	default:
		m.value = cleanPath(p.Value)
	}
	return m, err
}

func (m *pathMatcher) matches(path string) bool {
	switch m.kind {
	case RegularExpression:
		return m.pattern.MatchString(path)
	case PathPrefix:
		rest, ok := strings.CutPrefix(path, m.value)
		return ok && (rest == "" || rest[0] == '/')
	default:
		return path == m.value
	}
}

// path returns what compares the paths of the calls.
func (g *GRPCMatch) path() *pathMatcher {
	if g.Method == "" {
		return &pathMatcher{kind: PathPrefix, value: "/" + g.Service}
	}
	return &pathMatcher{kind: Exact, value: "/" + g.Service + "/" + g.Method}
}

// cleanPath returns p rooted, without dot segments and repeated slashes, and
// with its trailing slash if it had one. It does not allocate when p is clean.
func cleanPath(p string) string {
	if isClean(p) {
		return p
	}
	clean := path.Clean("/" + p)
	if clean != "/" && (strings.HasSuffix(p, "/") || endsInDots(p)) {
		clean += "/"
	}
	return clean
}

// endsInDots reports whether the last segment of p is a dot segment.
func endsInDots(p string) bool {
	return strings.HasSuffix(p, "/.") || strings.HasSuffix(p, "/..")
}

func isClean(p string) bool {
	if p == "" || p[0] != '/' {
		return false
	}
	for i := 0; i+1 < len(p); i++ {
		if p[i] == '/' && (p[i+1] == '/' || p[i+1] == '.') {
			return false
		}
	}
	return true
}
