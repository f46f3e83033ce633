package policy

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"golang.org/x/net/http/httpguts"
)

func (m *Match) validate(errs *problems, path string) {
	errs.count(path+".methods", len(m.Methods), 0, MaxMatches)
	for i, method := range m.Methods {
		if !httpguts.ValidHeaderFieldName(method) {
			errs.add(path+entry(".methods", i), "is %q: write a method such as GET", method)
		}
	}
	errs.count(path+".paths", len(m.Paths), 0, MaxMatches)
	for i, match := range m.Paths {
		match.validate(errs, path+entry(".paths", i))
	}
	errs.count(path+".headers", len(m.Headers), 0, MaxMatches)
	for i, match := range m.Headers {
		match.validate(errs, path+entry(".headers", i))
	}
	errs.count(path+".hosts", len(m.Hosts), 0, MaxMatches)
	for i, host := range m.Hosts {
		errs.failed(path+entry(".hosts", i), ValidateHost(host))
	}
	errs.count(path+".queryParams", len(m.QueryParams), 0, MaxMatches)
	for i, match := range m.QueryParams {
		match.validate(errs, path+entry(".queryParams", i))
	}
	errs.count(path+".sourceCIDRs", len(m.SourceCIDRs), 0, MaxMatches)
	errs.networks(path+".sourceCIDRs", m.SourceCIDRs)
	errs.count(path+".jwtClaims", len(m.JWTClaims), 0, MaxMatches)
	for i, match := range m.JWTClaims {
		match.validate(errs, path+entry(".jwtClaims", i))
	}
	if m.GRPC != nil {
		m.GRPC.validate(errs, path+".grpc")
	}
	if m.Expression != "" {
		errs.failed(path+".expression", ValidateCondition(m.Expression))
	}
	m.validateDescriptors(errs, path+".descriptors")
}

func (m *Match) validateDescriptors(errs *problems, path string) {
	errs.count(path, len(m.Descriptors), 0, MaxMatches)
	if len(m.Descriptors) > 0 && m.ofRequests() {
		errs.add(path, "stand beside fields of HTTP requests, so nothing matches: move them to an entry of their own")
	}
	for i, d := range m.Descriptors {
		errs.text(path+entry("", i)+".key", d.Key, 1)
		errs.text(path+entry("", i)+".value", d.Value, 0)
	}
}

// ofRequests reports whether m has a field that only HTTP requests match.
func (m *Match) ofRequests() bool {
	lists := len(m.Methods) + len(m.Paths) + len(m.Headers) + len(m.Hosts) + len(m.QueryParams) + len(m.SourceCIDRs) + len(m.JWTClaims)
	return lists > 0 || m.GRPC != nil || m.Expression != ""
}

func (m PathMatch) validate(errs *problems, path string) {
	oneOf(errs, path+".type", m.Type, Exact, PathPrefix, RegularExpression)
	switch {
	case m.Type == RegularExpression:
		errs.pattern(path+".value", m.Value)
	case !strings.HasPrefix(m.Value, "/") || len(m.Value) > maxPattern:
		errs.add(path+".value", "is %q: a path starts with a slash and has at most %d bytes", m.Value, maxPattern)
	}
}

func (m HeaderMatch) validate(errs *problems, path string) {
	errs.header(path+".name", m.Name)
	errs.compared(path, m.Type, m.Value)
}

func (m QueryMatch) validate(errs *problems, path string) {
	errs.text(path+".name", m.Name, 1)
	errs.compared(path, m.Type, m.Value)
}

func (m ClaimMatch) validate(errs *problems, path string) {
	errs.header(path+".header", m.Header)
	errs.claim(path+".claim", m.Claim)
	errs.compared(path, m.Type, m.Value)
}

// compared checks what values are compared with.
func (p *problems) compared(path string, kind MatchType, value string) {
	oneOf(p, path+".type", kind, Exact, RegularExpression, Present)
	switch {
	case kind == RegularExpression:
		p.pattern(path+".value", value)
	case kind == Present && value != "":
		p.add(path+".value", "is %q: type Present compares no value", value)
	default:
		p.text(path+".value", value, 0)
	}
}

var (
	grpcService = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
	grpcMethod  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (m *GRPCMatch) validate(errs *problems, path string) {
	errs.text(path+".service", m.Service, 1)
	if !grpcService.MatchString(m.Service) {
		errs.add(path+".service", "is %q: write the full name of a service such as shop.v1.Orders", m.Service)
	}
	errs.text(path+".method", m.Method, 0)
	if m.Method != "" && !grpcMethod.MatchString(m.Method) {
		errs.add(path+".method", "is %q: write the name of a method such as Create", m.Method)
	}
}

func (k *Key) validate(errs *problems, path string) {
	errs.count(path+".parts", len(k.Parts), 1, MaxParts)
	for i, part := range k.Parts {
		part.validate(errs, path+entry(".parts", i))
	}
	oneOf(errs, path+".onMissing", k.OnMissing, Shared, Skip, Reject)
	errs.within(path+".maxKeys", int64(k.MaxKeys), 1, MaxTrackedKeys)
}

func (p KeyPart) validate(errs *problems, path string) {
	oneOf(errs, path+".type", p.Type, HeaderKey, ClientIPKey, PathKey, MethodKey,
		HostKey, QueryParamKey, JWTClaimKey, PeerIdentityKey, ExpressionKey, DescriptorKey)
	switch p.Type {
	case HeaderKey, JWTClaimKey:
		errs.header(path+".header", p.Header)
	default:
		errs.absent(path+".header", p.Header, p.Type)
	}
	switch p.Type {
	case JWTClaimKey:
		errs.claim(path+".name", p.Name)
	case QueryParamKey, DescriptorKey:
		errs.text(path+".name", p.Name, 1)
	default:
		errs.absent(path+".name", p.Name, p.Type)
	}
	if p.Type != JWTClaimKey {
		errs.absent(path+".provider", p.Provider, p.Type)
	}
	if p.Type == ExpressionKey {
		errs.failed(path+".expression", ValidateValue(p.Expression))
	} else {
		errs.absent(path+".expression", p.Expression, p.Type)
	}
}

// validateTrust refuses a part that no request has.
func (p KeyPart) validateTrust(errs *problems, path string, by ClientIP) {
	if p.Type == PeerIdentityKey && by.TrustedHops == 0 && len(by.TrustedCIDRs) == 0 {
		errs.add(path, "is of type PeerIdentity, but no proxy is trusted: set clientIP")
	}
}

// absent refuses a setting that parts of the type do not have.
func (p *problems) absent(path, value string, of KeySource) {
	if value != "" {
		p.add(path, "is %q, which type %s does not read: remove it", value, of)
	}
}

// Canonical returns the value that requests have for this part when a person wrote
// it as value: a path without dot segments, an address as CompiledLimit.Value
// names it. It fails for what no request has.
func (p KeyPart) Canonical(value string) (string, error) {
	if value == "" || len(value) > maxPattern {
		return "", fmt.Errorf("has %d bytes: write 1 to %d", len(value), maxPattern)
	}
	switch p.Type {
	case ClientIPKey:
		return canonicalAddress(value)
	case PathKey:
		if value[0] != '/' {
			return "", fmt.Errorf("is %q: a path starts with a slash", value)
		}
		return cleanPath(value), nil
	case MethodKey:
		if !httpguts.ValidHeaderFieldName(value) {
			return "", fmt.Errorf("is %q: write a method such as GET", value)
		}
		return value, nil
	case HostKey:
		if host := hostOf(value); host != "" {
			return host, nil
		}
		return "", fmt.Errorf("is %q: write a host such as shop.example.com", value)
	default:
		return value, nil
	}
}

// canonicalAddress reads an address, or the /64 that an IPv6 client counts by.
func canonicalAddress(value string) (string, error) {
	if network, err := netip.ParsePrefix(value); err == nil && network.Addr().Is6() && network.Bits() == ipv6Bits {
		return network.Masked().String(), nil
	}
	addr, err := netip.ParseAddr(value)
	if err != nil {
		return "", fmt.Errorf("is %q: write an address such as 192.0.2.1 or the /64 of an IPv6 client", value)
	}
	return partOf(addr.Unmap().WithZone("")), nil
}

func (p KeyPart) validateValue(errs *problems, path, value string) {
	canonical, err := p.Canonical(value)
	switch {
	case err != nil:
		errs.add(path, "%w", err)
	case canonical != value:
		errs.add(path, "is %q, which no request has: write %q", value, canonical)
	}
}
