package policy

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ipv6Bits is the length of the prefix that one IPv6 client is given and can
// vary below at will.
const ipv6Bits = 64

// clientFinder finds the client's address. X-Forwarded-For is read from right to
// left, since what a proxy appends stands right of what a client wrote, and only
// as far as proxies are trusted.
type clientFinder struct {
	hops     int
	networks []netip.Prefix
}

func compileClientIP(c ClientIP) (clientFinder, error) {
	networks, err := compileNetworks(c.TrustedCIDRs)
	if err != nil {
		return clientFinder{}, fmt.Errorf("clientIP.trustedCIDRs%w", err)
	}
	return clientFinder{hops: c.TrustedHops, networks: networks}, nil
}

func compileNetworks(cidrs []string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for i, cidr := range cidrs {
		network, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// find returns the client's address as a key part: IPv4 addresses as they are,
// IPv6 addresses as their /64. It is empty when the peer has no IP address.
func (f *clientFinder) find(r *http.Request) string {
	addr, ok := f.addr(r)
	if !ok {
		return ""
	}
	return partOf(addr)
}

// text returns the client's address, empty when the peer has no IP address.
func (f *clientFinder) text(r *http.Request) string {
	addr, ok := f.addr(r)
	if !ok {
		return ""
	}
	return addr.String()
}

func (f *clientFinder) addr(r *http.Request) (netip.Addr, bool) {
	peer, ok := parseHop(r.RemoteAddr)
	if !ok {
		return netip.Addr{}, false
	}
	return f.client(peer, r.Header["X-Forwarded-For"]), true
}

// within reports whether the client's address is in one of the networks.
func (f *clientFinder) within(r *http.Request, networks []netip.Prefix) bool {
	addr, ok := f.addr(r)
	return ok && slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(addr) })
}

func partOf(addr netip.Addr) string {
	if addr.Is4() {
		return addr.String()
	}
	network, err := addr.Prefix(ipv6Bits)
	if err != nil {
		return ""
	}
	return network.String()
}

// client walks from the peer outwards while hops are trusted. A hop that cannot
// be read ends the walk at the peer: guessing would let its writer choose.
func (f *clientFinder) client(peer netip.Addr, forwarded []string) netip.Addr {
	hops := hopsOf(forwarded)
	addr := peer
	for trusted := 0; f.trusts(addr, trusted); trusted++ {
		entry, more := hops.next()
		if !more {
			return f.outermost(peer, addr)
		}
		next, ok := parseHop(entry)
		if !ok {
			return peer
		}
		addr = next
	}
	return addr
}

// trusts reports whether addr, with that many trusted hops between it and the pod,
// is a proxy whose word on its own peer counts.
func (f *clientFinder) trusts(addr netip.Addr, trusted int) bool {
	if f.hops > 0 {
		return trusted < f.hops
	}
	for _, network := range f.networks {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// outermost returns the client of a request whose every hop is trusted. With a
// number of hops, fewer of them mean that the request took another way.
func (f *clientFinder) outermost(peer, last netip.Addr) netip.Addr {
	if f.hops > 0 {
		return peer
	}
	return last
}

// hopList yields the entries of X-Forwarded-For from right to left, over all
// lines of the header.
type hopList struct {
	lines []string
	rest  string // of the line being read
	open  bool   // rest is still to be read, even when empty
}

func hopsOf(lines []string) hopList { return hopList{lines: lines} }

func (h *hopList) next() (string, bool) {
	if !h.open {
		if len(h.lines) == 0 {
			return "", false
		}
		last := len(h.lines) - 1
		h.lines, h.rest, h.open = h.lines[:last], h.lines[last], true
	}
	var entry string
	if i := strings.LastIndexByte(h.rest, ','); i >= 0 {
		entry, h.rest = h.rest[i+1:], h.rest[:i]
	} else {
		entry, h.open = h.rest, false
	}
	return strings.Trim(entry, " \t"), true
}

// parseHop reads an address with or without a port.
func parseHop(s string) (netip.Addr, bool) {
	addr, err := parseAddr(s)
	return addr.Unmap().WithZone(""), err == nil
}

// parseAddr looks for a port first, since to fail at parsing costs an allocation. An
// IPv6 address has one only behind brackets.
func parseAddr(s string) (netip.Addr, error) {
	bracketed := strings.HasPrefix(s, "[")
	switch {
	case bracketed && strings.HasSuffix(s, "]"):
		return netip.ParseAddr(s[1 : len(s)-1])
	case bracketed || strings.Count(s, ":") == 1:
		addrPort, err := netip.ParseAddrPort(s)
		return addrPort.Addr(), err
	default:
		return netip.ParseAddr(s)
	}
}

const clientCertHeader = "X-Forwarded-Client-Cert"

// identity returns the URI of the certificate by which the caller authenticated itself to the
// proxy in front of this process, as that proxy writes it: the last element of
// X-Forwarded-Client-Cert, which Envoy documents. The elements left of it were written by others.
// It is empty when the proxy is not trusted, and when the certificate has no URI, or several.
func (f *clientFinder) identity(r *http.Request) string {
	peer, ok := parseHop(r.RemoteAddr)
	if !ok || !f.trusts(peer, 0) {
		return ""
	}
	lines := r.Header[clientCertHeader]
	if len(lines) == 0 {
		return ""
	}
	var uri string
	for rest, more := lines[len(lines)-1], true; more; {
		var pair string
		var comma bool
		if rest, pair, comma, more = lastPair(rest); strings.EqualFold(pairName(pair), "URI") {
			if uri != "" {
				return ""
			}
			uri = unquote(pair[len("URI="):])
		}
		if comma {
			break
		}
	}
	return uri
}

// pairName returns the name of a pair, name=value.
func pairName(pair string) string {
	before, _, found := strings.Cut(pair, "=")
	if !found {
		return ""
	}
	return before
}

// lastPair cuts a text at its last separator outside of quotes: a semicolon between pairs of an
// element, or a comma between elements. It looks from the right, because the quotes of the last
// element match and those of others may not.
func lastPair(s string) (before, pair string, comma, more bool) {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch c := s[i]; {
		case c == '"' && !escaped(s[:i]):
			quoted = !quoted
		case !quoted && (c == ';' || c == ','):
			return s[:i], strings.Trim(s[i+1:], " \t"), c == ',', true
		}
	}
	return "", strings.Trim(s, " \t"), false, false
}

// escaped reports whether a quote behind s is part of a value.
func escaped(s string) bool {
	return (len(s)-len(strings.TrimRight(s, `\`)))%2 == 1
}

// unquote returns a value without its quotes.
func unquote(value string) string {
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return value
	}
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(value[1 : len(value)-1])
}
