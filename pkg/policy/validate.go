package policy

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Bounds of a snapshot.
const (
	MaxLimits      = 32
	MaxMatches     = 16 // entries of every list in a match
	MaxParts       = 4
	MaxTrackedKeys = 1_000_000
	MaxHops        = 64
	maxPattern     = 1024 // bytes of a compared value
)

var (
	objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	labelName  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
)

// Validate reports everything that is wrong with s, each with the path of its
// field. Whatever it accepts, Compile compiles.
func (s *Snapshot) Validate() error {
	var p problems
	if s.Cluster == "" || len(s.Cluster) > 253 || strings.ContainsFunc(s.Cluster, notInName) {
		p.add("cluster", "is %q: name the cluster with 1 to 253 printable characters other than a slash", s.Cluster)
	}
	for i := range s.Policies {
		path := field("policies", i)
		s.Policies[i].validate(&p, path)
		if i > 0 && s.Policies[i].compare(&s.Policies[i-1]) <= 0 {
			p.add(path, "is out of order: sort by namespace and name and keep one of each")
		}
	}
	return errors.Join(p...)
}

func (p *Policy) compare(q *Policy) int {
	return cmp.Or(cmp.Compare(p.Namespace, q.Namespace), cmp.Compare(p.Name, q.Name))
}

func (p *Policy) validate(errs *problems, path string) {
	errs.name(path+".namespace", p.Namespace, labelName)
	errs.name(path+".name", p.Name, objectName)
	if p.Generation < 0 {
		errs.add(path+".generation", "is %d: generations start at 0", p.Generation)
	}
	oneOf(errs, path+".mode", p.Mode, Enforce, Shadow)
	p.Store.validate(errs, path+".store")
	p.Consistency.validate(errs, path+".consistency")
	oneOf(errs, path+".onStoreUnavailable", p.OnStoreUnavailable, LocalShare, Allow, Deny)
	p.ClientIP.validate(errs, path+".clientIP")
	errs.count(path+".limits", len(p.Limits), 1, MaxLimits)
	for i := range p.Limits {
		limit := &p.Limits[i]
		limit.validate(errs, path+"."+field("limits", i))
		if slices.ContainsFunc(p.Limits[:i], func(l Limit) bool { return l.Name == limit.Name }) {
			errs.add(path+"."+field("limits", i)+".name", "is %q a second time: rename one of them", limit.Name)
		}
	}
}

func (s Store) validate(errs *problems, path string) {
	oneOf(errs, path+".type", s.Type, ControllerStore, RedisStore)
	switch s.Type {
	case RedisStore:
		host, port, err := net.SplitHostPort(s.Address)
		number, portErr := strconv.ParseUint(port, 10, 16)
		if err != nil || portErr != nil || host == "" || number == 0 || strings.ContainsFunc(host, notInName) {
			errs.add(path+".address", "is %q: write host:port", s.Address)
		}
	default:
		if s.Address != "" {
			errs.add(path+".address", "is %q: only type Redis has an address", s.Address)
		}
	}
}

func (c Consistency) validate(errs *problems, path string) {
	oneOf(errs, path+".mode", c.Mode, Leased, Strict)
	switch {
	case c.Mode == Leased && (c.Batch < 1 || c.Batch > limiter.MaxLimit):
		errs.add(path+".batch", "is %d: mode Leased needs 1 to %d", c.Batch, limiter.MaxLimit)
	case c.Mode == Strict && c.Batch != 0:
		errs.add(path+".batch", "is %d: only mode Leased has a batch", c.Batch)
	}
}

func (c ClientIP) validate(errs *problems, path string) {
	if c.TrustedHops != 0 && len(c.TrustedCIDRs) != 0 {
		errs.add(path, "has both trustedHops and trustedCIDRs: keep one")
	}
	if c.TrustedHops < 0 || c.TrustedHops > MaxHops {
		errs.add(path+".trustedHops", "is %d, outside 0 to %d", c.TrustedHops, MaxHops)
	}
	for i, cidr := range c.TrustedCIDRs {
		if _, err := netip.ParsePrefix(cidr); err != nil {
			errs.add(path+"."+field("trustedCIDRs", i), "is %q: write a network such as 10.0.0.0/8", cidr)
		}
	}
}

func (l *Limit) validate(errs *problems, path string) {
	errs.name(path+".name", l.Name, labelName)
	errs.count(path+".match", len(l.Match), 0, MaxMatches)
	for i := range l.Match {
		l.Match[i].validate(errs, path+"."+field("match", i))
	}
	if l.Key != nil {
		l.Key.validate(errs, path+".key")
	}
	if err := (limiter.Params{Rates: l.Rates}).Validate(); err != nil {
		errs.add(path+".rates", "are not valid: %w", err)
	}
}

func (m *Match) validate(errs *problems, path string) {
	errs.count(path+".methods", len(m.Methods), 0, MaxMatches)
	for i, method := range m.Methods {
		if !httpguts.ValidHeaderFieldName(method) {
			errs.add(path+"."+field("methods", i), "is %q: write a method such as GET", method)
		}
	}
	errs.count(path+".paths", len(m.Paths), 0, MaxMatches)
	for i, match := range m.Paths {
		match.validate(errs, path+"."+field("paths", i))
	}
	errs.count(path+".headers", len(m.Headers), 0, MaxMatches)
	for i, match := range m.Headers {
		match.validate(errs, path+"."+field("headers", i))
	}
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
	oneOf(errs, path+".type", m.Type, Exact, RegularExpression, Present)
	errs.header(path+".name", m.Name)
	switch {
	case m.Type == RegularExpression:
		errs.pattern(path+".value", m.Value)
	case m.Type == Present && m.Value != "":
		errs.add(path+".value", "is %q: type Present compares no value", m.Value)
	case len(m.Value) > maxPattern:
		errs.add(path+".value", "has more than %d bytes", maxPattern)
	}
}

func (k *Key) validate(errs *problems, path string) {
	errs.count(path+".parts", len(k.Parts), 1, MaxParts)
	for i, part := range k.Parts {
		at := path + "." + field("parts", i)
		oneOf(errs, at+".type", part.Type, HeaderKey, ClientIPKey, PathKey, MethodKey)
		if part.Type == HeaderKey {
			errs.header(at+".header", part.Header)
		} else if part.Header != "" {
			errs.add(at+".header", "is %q: only type Header has a header", part.Header)
		}
	}
	oneOf(errs, path+".onMissing", k.OnMissing, Shared, Skip, Reject)
	if k.MaxKeys < 1 || k.MaxKeys > MaxTrackedKeys {
		errs.add(path+".maxKeys", "is %d, outside 1 to %d", k.MaxKeys, MaxTrackedKeys)
	}
}

// problems collects errors about fields.
type problems []error

func (p *problems) add(path, format string, args ...any) {
	*p = append(*p, fmt.Errorf(path+" "+format, args...))
}

func (p *problems) name(path, value string, valid *regexp.Regexp) {
	if !valid.MatchString(value) {
		p.add(path, "is %q: use lower-case letters, digits and dashes", value)
	}
}

func (p *problems) header(path, value string) {
	if !httpguts.ValidHeaderFieldName(value) {
		p.add(path, "is %q: write a header's name such as x-tenant", value)
	}
}

func (p *problems) pattern(path, value string) {
	if len(value) > maxPattern {
		p.add(path, "has more than %d bytes", maxPattern)
		return
	}
	if _, err := compilePattern(value); err != nil {
		p.add(path, "is no RE2 expression: %w", err)
	}
}

func (p *problems) count(path string, n, least, most int) {
	if n < least || n > most {
		p.add(path, "has %d entries, outside %d to %d", n, least, most)
	}
}

func oneOf[T ~string](p *problems, path string, value T, allowed ...T) {
	if !slices.Contains(allowed, value) {
		p.add(path, "is %q: use one of %q", value, allowed)
	}
}

func field(name string, i int) string { return name + "[" + strconv.Itoa(i) + "]" }

func notInName(r rune) bool { return r == '/' || r <= ' ' || r > '~' }
