package policy

import (
	"cmp"
	"errors"
	"fmt"
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
	MaxLimits       = 32
	MaxMatches      = 16 // entries of every list in a match
	MaxParts        = 4
	MaxGroups       = 8 // of alternatives, of one policy
	MaxAlternatives = 8 // of one group
	MaxTrackedKeys  = 1_000_000
	MaxOverrides    = 32 // of one limit
	MaxValues       = 64 // of one override
	MaxTenants      = 64 // declared of one limit
	MaxAddresses    = 16 // of one store
	MaxHops         = 64
	MaxProviders    = 4 // of one policy
	maxClockSkew    = 300 * limiter.Second
	maxPattern      = 1024 // bytes of a compared value
	maxHost         = 253
)

var (
	objectName = formOf(253, `[a-z0-9]([-a-z0-9.]*[a-z0-9])?`)
	labelName  = formOf(63, `[a-z0-9]([-a-z0-9]*[a-z0-9])?`)
)

// A form is a pattern with a bound of its own: one within the pattern is compiled to as many copies,
// which each process would keep.
type form struct {
	most    int // bytes
	pattern *regexp.Regexp
}

// formOf returns the form of a text that an expression matches as a whole.
func formOf(most int, expression string) form {
	return form{most, regexp.MustCompile(`^(?:` + expression + `)$`)}
}

func (f form) matches(text string) bool { return len(text) <= f.most && f.pattern.MatchString(text) }

// Validate reports everything that is wrong with s, each with the path of its
// field. Compile compiles all that it accepts.
func (s *Snapshot) Validate() error {
	var p problems
	s.validateFrame(&p)
	for i := range s.Policies {
		s.Policies[i].validate(&p, entry("policies", i))
	}
	s.validateEachPool(&p)
	return errors.Join(p...)
}

func (s *Snapshot) validateEachPool(p *problems) {
	if s.Pool != nil {
		s.Pool.validate(p, "pool")
	}
	for i := range s.Pools {
		s.Pools[i].validate(p, entry("pools", i))
	}
}

// validateFrame looks at all but the policies and the pools themselves.
func (s *Snapshot) validateFrame(p *problems) {
	if s.Cluster == "" || len(s.Cluster) > 253 || strings.ContainsFunc(s.Cluster, notInName) {
		p.add("cluster", "is %q: name the cluster with 1 to 253 printable characters other than a slash", s.Cluster)
	}
	for i := 1; i < len(s.Policies); i++ {
		if s.Policies[i].compare(&s.Policies[i-1]) <= 0 {
			p.add(entry("policies", i), "is out of order: sort by namespace and name and keep one of each")
		}
	}
	s.validatePools(p)
}

// validatePools looks at which pools there are.
func (s *Snapshot) validatePools(p *problems) {
	all := len(s.Pools)
	if s.Pool != nil {
		all++
	}
	p.count("pool and pools together", all, 0, MaxPools)
	for i := range s.Pools {
		if i > 0 && s.Pools[i].compare(&s.Pools[i-1]) <= 0 {
			p.add(entry("pools", i), "is out of order: sort by namespace and name and keep one of each")
		}
		if s.Pool != nil && s.Pools[i].compare(s.Pool) == 0 {
			p.add(entry("pools", i), "is pool, too: keep one of the two")
		}
	}
}

func (p *Policy) compare(q *Policy) int {
	return cmp.Or(cmp.Compare(p.Namespace, q.Namespace), cmp.Compare(p.Name, q.Name))
}

func (p *Policy) validate(errs *problems, path string) {
	errs.name(path+".namespace", p.Namespace, labelName)
	errs.name(path+".name", p.Name, objectName)
	errs.within(path+".generation", p.Generation, 0, limiter.MaxGeneration)
	errs.within(path+".since", int64(p.Since), 0, limiter.MaxExact)
	errs.within(path+".resetAt", int64(p.ResetAt), 0, limiter.MaxExact)
	oneOf(errs, path+".mode", p.Mode, Enforce, Shadow)
	p.Store.validate(errs, path+".store")
	p.Consistency.validate(errs, path+".consistency")
	oneOf(errs, path+".onStoreUnavailable", p.OnStoreUnavailable, LocalShare, Allow, Deny)
	p.ClientIP.validate(errs, path+".clientIP")
	p.validateProviders(errs, path+".jwtProviders")
	p.Response.validate(errs, path+".response")
	errs.count(path+".limits", len(p.Limits), 1, MaxLimits)
	for i := range p.Limits {
		limit := &p.Limits[i]
		limit.validate(errs, path+entry(".limits", i), p)
		errs.providers(limit.claims(path+entry(".limits", i)), p.JWTProviders)
		if slices.ContainsFunc(p.Limits[:i], func(l Limit) bool { return l.Name == limit.Name }) {
			errs.add(path+entry(".limits", i)+".name", "is %q a second time: rename one of them", limit.Name)
		}
	}
	p.validateGroups(errs, path+".anyOf")
}

// validateGroups looks at the alternatives. A limit in shadow lets every request pass, so a
// group with one would never refuse.
func (p *Policy) validateGroups(errs *problems, path string) {
	errs.count(path, len(p.AnyOf), 0, MaxGroups)
	seen := make(map[string]bool)
	for i, group := range p.AnyOf {
		errs.count(path+entry("", i), len(group), 2, MaxAlternatives)
		for j, name := range group {
			at := path + entry("", i) + entry("", j)
			known := slices.IndexFunc(p.Limits, func(l Limit) bool { return l.Name == name })
			switch {
			case known < 0:
				errs.add(at, "is %q, which is not a limit of the policy: name one of limits", name)
			case seen[name]:
				errs.add(at, "is %q a second time: a limit is in one group, and once", name)
			case p.Limits[known].Mode == Shadow:
				errs.add(at, "is %q, which is in Shadow and refuses nothing: take it out, or set mode of the policy to Shadow", name)
			}
			seen[name] = true
		}
	}
}

func (c ClientIP) validate(errs *problems, path string) {
	if c.TrustedHops != 0 && len(c.TrustedCIDRs) != 0 {
		errs.add(path, "has both trustedHops and trustedCIDRs: keep one")
	}
	if c.TrustedHops < 0 || c.TrustedHops > MaxHops {
		errs.add(path+".trustedHops", "is %d, outside 0 to %d", c.TrustedHops, MaxHops)
	}
	errs.networks(path+".trustedCIDRs", c.TrustedCIDRs)
}

// problems collects errors about fields.
type problems []error

func (p *problems) add(path, format string, args ...any) {
	*p = append(*p, fmt.Errorf(path+" "+format, args...))
}

func (p *problems) name(path, value string, valid form) {
	if !valid.matches(value) {
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
		p.add(path, "is not a valid RE2 expression: %w", err)
	}
}

func (p *problems) networks(path string, cidrs []string) {
	for i, cidr := range cidrs {
		if _, err := netip.ParsePrefix(cidr); err != nil {
			p.add(entry(path, i), "is %q: write a network such as 10.0.0.0/8", cidr)
		}
	}
}

// failed notes an error, if it is one.
func (p *problems) failed(path string, err error) {
	if err != nil {
		p.add(path, "%w", err)
	}
}

// text checks a value that is compared as it is.
func (p *problems) text(path, value string, least int) {
	if len(value) < least || len(value) > maxPattern {
		p.add(path, "has %d bytes, outside %d to %d", len(value), least, maxPattern)
	}
}

func (p *problems) within(path string, value, least, most int64) {
	if value < least || value > most {
		p.add(path, "is %d, outside %d to %d", value, least, most)
	}
}

func (p *problems) matches(path string, ms []Match) {
	p.count(path, len(ms), 0, MaxMatches)
	for i := range ms {
		ms[i].validate(p, entry(path, i))
	}
}

// requestMatches are those of a pool: of requests alone, since a descriptor needs no slot,
// and without providers, since a pool has none.
func (p *problems) requestMatches(path string, ms []Match) {
	p.matches(path, ms)
	p.providers(claimsOf(path, ms), nil)
	for i := range ms {
		if len(ms[i].Descriptors) > 0 {
			p.add(entry(path, i)+".descriptors", "match no request that needs a slot of a pool: remove them")
		}
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

func entry(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

func notInName(r rune) bool { return r == '/' || r <= ' ' || r > '~' }
