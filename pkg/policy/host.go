package policy

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

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
