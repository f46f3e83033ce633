package policy

import (
	"fmt"
	"net/netip"
	"slices"
)

// Matches reports whether the limit applies to r.
func (l *CompiledLimit) Matches(r *Request) bool {
	return (l.matches.none() || l.matches.inAnyReading(r)) && !l.exempt.inEveryReading(r)
}

// matchers are the entries of a list; one has to match.
type matchers struct {
	byPath []matcher // asked again for each reading of a path; clients choose how many
	others []matcher // say the same of all readings
}

func (ms *matchers) none() bool { return len(ms.byPath) == 0 && len(ms.others) == 0 }

// inPlainReading reports whether an entry matches r by its path decoded and clean.
func (ms *matchers) inPlainReading(r *Request) bool {
	return anyMatches(ms.byPath, r, r.path) || anyMatches(ms.others, r, r.path)
}

// inAnyReading reports whether an entry matches r by one of the readings of its path.
func (ms *matchers) inAnyReading(r *Request) bool {
	return ms.inPlainReading(r) || len(ms.byPath) > 0 &&
		slices.ContainsFunc(r.otherReadings(), func(path string) bool { return anyMatches(ms.byPath, r, path) })
}

// inEveryReading reports whether entries match r, however its path is read.
func (ms *matchers) inEveryReading(r *Request) bool {
	return anyMatches(ms.byPath, r, r.path) &&
		!slices.ContainsFunc(r.otherReadings(), func(path string) bool { return !anyMatches(ms.byPath, r, path) }) ||
		anyMatches(ms.others, r, r.path)
}

func anyMatches(ms []matcher, r *Request, path string) bool {
	for i := range ms {
		if ms[i].matches(r, path) {
			return true
		}
	}
	return false
}

type matcher struct {
	methods []string
	paths   []pathMatcher
	headers []headerMatcher

	hosts     []hostMatcher
	rpc       *pathMatcher
	query     []namedMatcher
	networks  []netip.Prefix
	claims    []claimMatcher
	client    clientFinder
	condition *condition
	unknown   bool // of matching

	descriptors []DescriptorMatch // of calls, which have nothing else
}

// matching is what the entries of one list have in common.
type matching struct {
	client clientFinder
	tokens verifiers
	// unknown is what an expression says that has no value for a request, and what is
	// said of a path that has too many readings. It errs on the side of the limit: a
	// request that cannot be judged is counted.
	unknown bool
}

func compileMatches(name string, ms []Match, how matching) (compiled matchers, err error) {
	for i := range ms {
		m, err := compileMatch(&ms[i], how)
		if err != nil {
			return matchers{}, fmt.Errorf("%s[%d]: %w", name, i, err)
		}
		if m.readsPath() {
			compiled.byPath = append(compiled.byPath, m)
		} else {
			compiled.others = append(compiled.others, m)
		}
	}
	return compiled, nil
}

func compileMatch(m *Match, how matching) (c matcher, err error) {
	c = matcher{methods: m.Methods, descriptors: m.Descriptors, client: how.client, unknown: how.unknown}
	for _, host := range m.Hosts {
		c.hosts = append(c.hosts, compileHost(host))
	}
	if m.GRPC != nil {
		c.rpc = m.GRPC.path()
	}
	if c.paths, err = compileEach(m.Paths, compilePath); err != nil {
		return c, err
	}
	if c.headers, err = compileEach(m.Headers, compileHeader); err != nil {
		return c, err
	}
	if c.query, err = compileEach(m.QueryParams, compileQuery); err != nil {
		return c, err
	}
	if c.claims, err = compileEach(m.JWTClaims, func(m ClaimMatch) (claimMatcher, error) { return compileClaim(m, how.tokens) }); err != nil {
		return c, err
	}
	if c.networks, err = compileNetworks(m.SourceCIDRs); err != nil || m.Expression == "" {
		return c, err
	}
	c.condition, err = compileCondition(m.Expression, how)
	return c, err
}

func compileEach[From, To any](all []From, compile func(From) (To, error)) ([]To, error) {
	var compiled []To
	for _, one := range all {
		c, err := compile(one)
		if err != nil {
			return nil, err
		}
		compiled = append(compiled, c)
	}
	return compiled, nil
}

// readsPath reports whether what m says of a request may depend on its path.
func (m *matcher) readsPath() bool {
	return len(m.paths) > 0 || m.rpc != nil || m.condition != nil && m.condition.program.readsPath
}

// matches reports whether m matches r when its path is read so.
func (m *matcher) matches(r *Request, path string) bool {
	if r.http == nil || len(m.descriptors) > 0 {
		return m.matchesDescriptor(r)
	}
	if len(m.methods) > 0 && !slices.Contains(m.methods, r.http.Method) {
		return false
	}
	if !m.matchesPath(path) {
		return false
	}
	for i := range m.headers {
		if !m.headers[i].matches(r.http) {
			return false
		}
	}
	return m.matchesTarget(r) && m.matchesSender(r) && (m.condition == nil || m.condition.matches(r, path))
}

// matchesPath compares a reading of the path.
func (m *matcher) matchesPath(path string) bool {
	if path == unreadable && (len(m.paths) > 0 || m.rpc != nil) {
		return m.unknown
	}
	if len(m.paths) > 0 && !slices.ContainsFunc(m.paths, func(p pathMatcher) bool { return p.matches(path) }) {
		return false
	}
	return m.rpc == nil || m.rpc.matches(path)
}

// matchesTarget compares what else the request asks for.
func (m *matcher) matchesTarget(r *Request) bool {
	if len(m.hosts) > 0 {
		host := hostOf(r.http.Host)
		if !slices.ContainsFunc(m.hosts, func(h hostMatcher) bool { return h.matches(host) }) {
			return false
		}
	}
	for i := range m.query {
		if !m.query[i].matchesQuery(r.http.URL.RawQuery) {
			return false
		}
	}
	return true
}

// matchesSender compares the sender of the request.
func (m *matcher) matchesSender(r *Request) bool {
	if len(m.networks) > 0 && !m.client.within(r.http, m.networks) {
		return false
	}
	for i := range m.claims {
		if c := &m.claims[i]; !c.matches(r.known().claims(c.of)) {
			return false
		}
	}
	return true
}
