package policy

import (
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
