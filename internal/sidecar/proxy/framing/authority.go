package framing

import (
	"net/netip"
	"strings"
)

// IsAuthority reports whether s is a host, and maybe a port, without user information; see
// RFC 3986, section 3.2. The empty host is one: HTTP/1.1 has it sent where there is none.
func IsAuthority(s string) bool {
	host, port := s, ""
	if end := strings.LastIndexByte(s, ']'); end >= 0 && s[0] == '[' {
		host, port = s[:end+1], s[end+1:]
		if address, err := netip.ParseAddr(host[1:end]); err != nil || !address.Is6() || address.Zone() != "" {
			return false
		}
		host = ""
	} else if colon := strings.IndexByte(s, ':'); colon >= 0 {
		host, port = s[:colon], s[colon:]
	}
	for i := range len(host) {
		if c := host[i]; !isNameByte(c) && (c != '%' || i+2 >= len(host) || !isHex(host[i+1]) || !isHex(host[i+2])) {
			return false
		}
	}
	return port == "" || port[0] == ':' && strings.Trim(port[1:], "0123456789") == ""
}

// isNameByte reports whether c is unreserved or a sub-delimiter; see RFC 3986.
func isNameByte(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || isDigit(c) || strings.IndexByte("-._~!$&'()*+,;=", c) >= 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool {
	_, ok := hexadecimal(c)
	return ok
}
