package policy

import (
	"fmt"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A Set is a snapshot compiled for the request path. It is immutable.
type Set struct {
	Snapshot Snapshot
	Limits   []*CompiledLimit // in the order of the snapshot

	byName map[limitName]*CompiledLimit
	pool   *CompiledPool
}

type limitName struct{ namespace, policy, limit string }

// A CompiledLimit is one limit of a set, ready to judge requests.
type CompiledLimit struct {
	Policy *Policy
	Limit  *Limit

	matches []matcher
	exempt  []matcher
	key     keyer
	tenants tenants
	costs   costHeaders
}

// Compile validates s and returns it ready for use. The set keeps s: the caller
// no longer changes it. A policy of the set that says nothing of responses has the
// DefaultResponse.
func Compile(s Snapshot) (*Set, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	s.Policies = slices.Clone(s.Policies) // the responses of which are filled in
	set := &Set{Snapshot: s, byName: make(map[limitName]*CompiledLimit)}
	for i := range s.Policies {
		p := &s.Policies[i]
		p.Response = p.Response.orDefault()
		for j := range p.Limits {
			l, err := compileLimit(p, &p.Limits[j])
			if err != nil {
				return nil, fmt.Errorf("policies[%d].limits[%d]: %w", i, j, err)
			}
			set.Limits = append(set.Limits, l)
			set.byName[limitName{p.Namespace, p.Name, l.Limit.Name}] = l
		}
	}
	if s.Pool != nil {
		var err error
		if set.pool, err = compilePool(s.Pool); err != nil {
			return nil, fmt.Errorf("pool.%w", err)
		}
	}
	return set, nil
}

// Pool returns the pool that requests need a slot of, nil when there is none.
func (s *Set) Pool() *CompiledPool { return s.pool }

// Lookup returns the limit of that name, nil when there is none.
func (s *Set) Lookup(namespace, policy, limit string) *CompiledLimit {
	return s.byName[limitName{namespace, policy, limit}]
}

func compileLimit(p *Policy, l *Limit) (*CompiledLimit, error) {
	c := &CompiledLimit{Policy: p, Limit: l, costs: compileCost(l.Cost)}
	var err error
	if c.matches, err = compileMatches("match", l.Match); err != nil {
		return nil, err
	}
	if c.exempt, err = compileMatches("exempt", l.Exempt); err != nil {
		return nil, err
	}
	if c.key, err = compileKey(l.Key, p.ClientIP); err != nil {
		return nil, err
	}
	c.tenants, err = compileTenants(l.Fairness, p.ClientIP)
	return c, err
}

// Shadow reports whether refusals of the limit are counted and let pass.
func (l *CompiledLimit) Shadow() bool { return l.Policy.Mode == Shadow || l.Limit.Mode == Shadow }

// Matches reports whether the limit applies to r.
func (l *CompiledLimit) Matches(r *Request) bool {
	return (len(l.matches) == 0 || anyMatches(l.matches, r)) && !anyMatches(l.exempt, r)
}

func anyMatches(ms []matcher, r *Request) bool {
	for i := range ms {
		if ms[i].matches(r) {
			return true
		}
	}
	return false
}

type matcher struct {
	methods []string
	paths   []pathMatcher
	headers []headerMatcher

	descriptors []DescriptorMatch // of calls, which have nothing else
}

func compileMatches(name string, ms []Match) ([]matcher, error) {
	var compiled []matcher
	for i := range ms {
		m, err := compileMatch(&ms[i])
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", name, i, err)
		}
		compiled = append(compiled, m)
	}
	return compiled, nil
}

func compileMatch(m *Match) (matcher, error) {
	c := matcher{methods: m.Methods, descriptors: m.Descriptors}
	for _, p := range m.Paths {
		compiled, err := compilePath(p)
		if err != nil {
			return matcher{}, err
		}
		c.paths = append(c.paths, compiled)
	}
	for _, h := range m.Headers {
		compiled, err := compileHeader(h)
		if err != nil {
			return matcher{}, err
		}
		c.headers = append(c.headers, compiled)
	}
	return c, nil
}

func (m *matcher) matches(r *Request) bool {
	if r.http == nil || len(m.descriptors) > 0 {
		return m.matchesDescriptor(r)
	}
	if len(m.methods) > 0 && !slices.Contains(m.methods, r.http.Method) {
		return false
	}
	if len(m.paths) > 0 && !slices.ContainsFunc(m.paths, func(p pathMatcher) bool { return p.matches(r.path) }) {
		return false
	}
	for i := range m.headers {
		if !m.headers[i].matches(r.http) {
			return false
		}
	}
	return true
}

type pathMatcher struct {
	kind    MatchType
	value   string
	pattern *regexp.Regexp
}

func compilePath(p PathMatch) (m pathMatcher, err error) {
	m = pathMatcher{kind: p.Type, value: p.Value}
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

type headerMatcher struct {
	kind    MatchType
	name    string // canonical
	value   string
	pattern *regexp.Regexp
}

func compileHeader(h HeaderMatch) (m headerMatcher, err error) {
	m = headerMatcher{kind: h.Type, name: http.CanonicalHeaderKey(h.Name), value: h.Value}
	if h.Type == RegularExpression {
		m.pattern, err = compilePattern(h.Value)
	}
	return m, err
}

// matches reports whether one of the header's values matches.
func (m *headerMatcher) matches(r *http.Request) bool {
	if m.name == "Host" {
		return m.matchesValue(r.Host)
	}
	return slices.ContainsFunc(r.Header[m.name], m.matchesValue)
}

func (m *headerMatcher) matchesValue(value string) bool {
	switch m.kind {
	case RegularExpression:
		return m.pattern.MatchString(value)
	case Present:
		return true
	default:
		return value == m.value
	}
}

// compilePattern compiles an expression that has to match the whole value.
func compilePattern(expression string) (*regexp.Regexp, error) {
	// By itself first: ")(" must not become valid between our brackets.
	if _, err := regexp.Compile(expression); err != nil {
		return nil, err
	}
	return regexp.Compile(`\A(?:` + expression + `)\z`)
}

// cleanPath returns p rooted, without dot segments and repeated slashes, and
// with its trailing slash if it had one. It does not allocate when p is clean.
func cleanPath(p string) string {
	if isClean(p) {
		return p
	}
	clean := path.Clean("/" + p)
	if clean != "/" && (strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.") || strings.HasSuffix(p, "/..")) {
		clean += "/"
	}
	return clean
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
