package policy

import (
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
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

// hostPattern is a name in lower case, which a wildcard may begin.
var hostPattern = regexp.MustCompile(`^(\*\.)?[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*$`)

// hostOf returns the host that the value of a Host field names, in one spelling:
// without port, brackets and trailing dots, and in lower case. It is empty when the
// field names none, and does not allocate when the name is in lower case.
func hostOf(field string) string {
	host := field
	if strings.HasPrefix(host, "[") {
		if end := strings.IndexByte(host, ']'); end > 0 && (end+1 == len(host) || host[end+1] == ':') {
			host = host[1:end]
		}
	} else if i := strings.IndexByte(host, ':'); i >= 0 && i == strings.LastIndexByte(host, ':') {
		host = host[:i]
	}
	if strings.IndexByte(host, ':') < 0 {
		return strings.ToLower(strings.TrimRight(host, "."))
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().WithZone("").String()
	}
	return strings.ToLower(field) // names no host
}

// A hostMatcher compares hosts in the spelling of hostOf.
type hostMatcher struct {
	value    string // of a wildcard what follows the asterisk
	wildcard bool
}

func compileHost(pattern string) hostMatcher {
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return hostMatcher{value: hostOf(suffix), wildcard: true}
	}
	return hostMatcher{value: hostOf(pattern)}
}

func (m *hostMatcher) matches(host string) bool {
	if m.wildcard {
		return len(host) > len(m.value) && strings.HasSuffix(host, m.value)
	}
	return host == m.value
}

// ValidateHost reports why host is not one that Match.Hosts may have.
func ValidateHost(host string) error {
	if addr, err := netip.ParseAddr(host); err == nil && addr.String() == hostOf(host) {
		return nil
	}
	if len(host) > maxHost || !hostPattern.MatchString(host) {
		return fmt.Errorf("is %q: write a host in lower case and without a port, such as shop.example.com or *.example.com", host)
	}
	return nil
}
