package policy

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/pkg/limiter"
)

func (l *Limit) validate(errs *problems, path string, p *Policy) {
	errs.name(path+".name", l.Name, labelName)
	if l.Mode != "" {
		oneOf(errs, path+".mode", l.Mode, Enforce, Shadow)
	}
	errs.matches(path+".match", l.Match)
	errs.matches(path+".exempt", l.Exempt)
	if l.Key != nil {
		l.Key.validate(errs, path+".key")
		for i, part := range l.Key.Parts {
			part.validateTrust(errs, path+entry(".key.parts", i), p.ClientIP)
		}
	}
	if l.Algorithm != "" {
		oneOf(errs, path+".algorithm", l.Algorithm, FixedWindow, SlidingWindow, SlidingLog, TokenBucket, GCRA, LeakyBucket)
	}
	l.validateOverrides(errs, path+".overrides")
	l.validateParams(errs, path)
	l.validateConsistency(errs, path, p.Consistency)
	if l.Cost != nil {
		l.Cost.validate(errs, path+".cost")
	}
	if l.Fairness != nil {
		l.validateFairness(errs, path+".fairness", p.Consistency)
		l.Fairness.Tenant.validateTrust(errs, path+".fairness.tenant", p.ClientIP)
	}
	if l.Budget != nil {
		l.validateBudget(errs, path, p)
	}
}

// validateParams checks what the limit, and each of its overrides, is worked by.
// Fairness is checked by itself, since it names tenants here and not their hashes.
func (l *Limit) validateParams(errs *problems, path string) {
	params := l.Params(new(Policy))
	params.Fairness = limiter.Fairness{}
	if err := params.Validate(); err != nil {
		errs.add(path, "is invalid: %w", err)
	}
	for i, o := range l.Overrides {
		params.Rates = o.Rates
		if err := params.Validate(); err != nil {
			errs.add(path+entry(".overrides", i), "is invalid: %w", err)
		}
	}
}

// validateConsistency refuses what would break the algorithm's promise.
func (l *Limit) validateConsistency(errs *problems, path string, c Consistency) {
	windows := algorithms[l.Algorithm].WindowCoupled()
	switch {
	case l.Algorithm == LeakyBucket && c.Mode != Strict:
		errs.add(path+".algorithm", "is LeakyBucket, which delays each request by its place in the queue: that needs mode Strict, not %s", c.Mode)
	case c.Expiry == CarryOver && !windows:
		errs.add(path+".algorithm", "is %s, whose credits cannot be carried over: it has no windows", l.Algorithm)
	case l.Lifetime != 0 && c.Mode != Leased:
		errs.add(path+".lifetime", "is %dµs: only mode Leased has credits with a lifetime", l.Lifetime)
	}
	if l.Cost != nil && l.Cost.ResponseHeader != "" && l.Algorithm == LeakyBucket {
		errs.add(path+".cost.responseHeader", "is %q: a place in the queue of a LeakyBucket cannot be given back", l.Cost.ResponseHeader)
	}
}

func (l *Limit) validateOverrides(errs *problems, path string) {
	errs.count(path, len(l.Overrides), 0, MaxOverrides)
	if len(l.Overrides) > 0 && l.Key == nil {
		errs.add(path, "are of a limit without a key, which has no values")
		return
	}
	seen := make(map[string]bool)
	for i, o := range l.Overrides {
		at := entry(path, i)
		errs.count(at+".values", len(o.Values), 1, MaxValues)
		for j, v := range o.Values {
			l.Key.validateValue(errs, at+entry(".values", j), v)
			joined := JoinParts(v...)
			if seen[joined] {
				errs.add(at+entry(".values", j), "is %q a second time: remove one", []string(v))
			}
			seen[joined] = true
		}
	}
}

// validateValue refuses a value that no request has.
func (k *Key) validateValue(errs *problems, path string, v Value) {
	if len(v) != len(k.Parts) {
		errs.add(path, "has %d parts, but the key has %d", len(v), len(k.Parts))
		return
	}
	for i, part := range k.Parts {
		part.validateValue(errs, entry(path, i), v[i])
	}
}

func (c *Cost) validate(errs *problems, path string) {
	errs.within(path+".default", c.Default, 1, limiter.MaxLimit)
	errs.within(path+".max", c.Max, max(1, c.Default), limiter.MaxLimit)
	if c.RequestHeader != "" {
		errs.header(path+".requestHeader", c.RequestHeader)
	}
	if c.ResponseHeader != "" {
		errs.header(path+".responseHeader", c.ResponseHeader)
	}
}

func (l *Limit) validateFairness(errs *problems, path string, c Consistency) {
	f := l.Fairness
	single := len(l.Rates) == 1 && !slices.ContainsFunc(l.Overrides, func(o Override) bool { return len(o.Rates) != 1 })
	if !single || l.Any || algorithms[l.Algorithm] != limiter.FixedWindow || c.Expiry == CarryOver {
		errs.add(path, "splits one window: it needs algorithm FixedWindow, one rate and credits that die with their window")
	}
	f.Tenant.validate(errs, path+".tenant")
	errs.within(path+".defaultWeight", f.DefaultWeight, 1, limiter.MaxWeight)
	errs.count(path+".weights", len(f.Weights), 0, limiter.MaxDeclared)
	for i, w := range f.Weights {
		at := path + entry(".weights", i)
		f.Tenant.validateValue(errs, at+".tenant", w.Tenant)
		errs.within(at+".weight", w.Weight, 1, limiter.MaxWeight)
		if slices.ContainsFunc(f.Weights[:i], func(o Weight) bool { return JoinParts(o.Tenant) == JoinParts(w.Tenant) }) {
			errs.add(at+".tenant", "is %q a second time: remove one", w.Tenant)
		}
	}
}

var (
	sentinelName = formOf(128, `[-._A-Za-z0-9]+`)
	gatewayForm  = regexp.MustCompile(`^[0-9a-f]{16}$`)
	databaseName = formOf(63, `[-_$A-Za-z0-9]+`)
)

// isSecretName reports whether a secret is named by its namespace and name.
func isSecretName(text string) bool {
	namespace, name, ok := strings.Cut(text, "/")
	return ok && labelName.matches(namespace) && objectName.matches(name)
}

func (s Store) validate(errs *problems, path string) {
	oneOf(errs, path+".type", s.Type, ControllerStore, RedisStore, PostgresStore, GatewayStore)
	switch s.Type {
	case RedisStore:
		s.validateRedis(errs, path)
	case PostgresStore:
		s.validatePostgres(errs, path)
	case GatewayStore:
		s.validateGateway(errs, path)
	default:
		if s != (Store{Type: s.Type}) {
			errs.add(path, "names a server: only types Redis and Postgres have one")
		}
	}
	if s.Secret != "" && !isSecretName(s.Secret) {
		errs.add(path+".secret", "is %q: write namespace/name", s.Secret)
	}
	if s.SecretVersion != "" && s.Secret == "" {
		errs.add(path+".secretVersion", "is %q, but there is no secret", s.SecretVersion)
	}
}

func (s Store) validateRedis(errs *problems, path string) {
	if s.REST {
		s.validateREST(errs, path)
		return
	}
	addresses := strings.Split(s.Address, ",")
	errs.count(path+".address", len(addresses), 1, MaxAddresses)
	for _, address := range addresses {
		if !isHostPort(address) {
			errs.add(path+".address", "is %q: write host:port", address)
		}
	}
	switch {
	case s.Cluster && s.Sentinel != "":
		errs.add(path+".sentinel", "is %q, but the addresses are of a cluster: keep one", s.Sentinel)
	case s.Sentinel != "" && !sentinelName.matches(s.Sentinel):
		errs.add(path+".sentinel", "is %q: use letters, digits, dots, dashes and underscores", s.Sentinel)
	case len(addresses) > 1 && !s.Cluster && s.Sentinel == "":
		errs.add(path+".address", "names %d servers: only a cluster and Sentinels have several", len(addresses))
	}
	if s.Database != "" {
		errs.add(path+".database", "is %q: only type Postgres has a database", s.Database)
	}
}

func (s Store) validateREST(errs *problems, path string) {
	u, err := url.Parse(s.Address)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || strings.ContainsFunc(s.Address, notInURL):
		errs.add(path+".address", "is not a URL: write https and a host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		errs.add(path+".address", "has a user, a query or a fragment: write https, a host and a path")
	case s.TLS != (u.Scheme == "https"):
		errs.add(path+".tls", "is %t, but the URL begins with %s", s.TLS, u.Scheme)
	}
	if s.Cluster || s.Sentinel != "" || s.Database != "" {
		errs.add(path, "has a cluster, Sentinels or a database: a Redis over HTTP has none")
	}
	if s.Secret == "" {
		errs.add(path+".secret", "is missing: name one with a token")
	}
}

func (s Store) validatePostgres(errs *problems, path string) {
	if !isHostPort(s.Address) && !isHostPort(s.Address+":5432") {
		errs.add(path+".address", "is %q: write host or host:port", s.Address)
	}
	if !databaseName.matches(s.Database) {
		errs.add(path+".database", "is %q: use 1 to 63 letters, digits, dashes and underscores", s.Database)
	}
	if s.Cluster || s.Sentinel != "" || s.REST {
		errs.add(path, "has a cluster, Sentinels or a URL: only type Redis has them")
	}
}

func (s Store) validateGateway(errs *problems, path string) {
	if !gatewayForm.MatchString(s.Address) {
		errs.add(path+".address", "is %q: the controller names a store by %d hexadecimal digits", s.Address, 2*gatewayName)
	}
	if s != (Store{Type: GatewayStore, Address: s.Address}) {
		errs.add(path, "names a server: only the controller knows that of type Gateway")
	}
}

// notInURL keeps out what a store's name in a list or a log is mistaken by.
func notInURL(r rune) bool { return r <= ' ' || r > '~' || r == ',' || r == '|' }

func isHostPort(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || strings.ContainsFunc(host, notInName) || strings.Contains(host, "@") {
		return false
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return err == nil && number > 0
}

func (c Consistency) validate(errs *problems, path string) {
	oneOf(errs, path+".mode", c.Mode, Leased, CachedDeny, Strict)
	if c.Mode == Leased {
		c.validateLease(errs, path)
	} else if c != (Consistency{Mode: c.Mode}) {
		errs.add(path, "has settings of leases: only mode Leased leases")
	}
}

func (c Consistency) validateLease(errs *problems, path string) {
	oneOf(errs, path+".size", c.Size, Adaptive, Predictive, Fixed)
	oneOf(errs, path+".expiry", c.Expiry, Coupled, CarryOver)
	errs.within(path+".batch", c.Batch, 1, limiter.MaxLimit)
	if c.Size == Fixed {
		errs.within(path+".min", c.Min, 0, 0)
		errs.within(path+".max", c.Max, 0, 0)
	} else {
		errs.within(path+".min", c.Min, 1, limiter.MaxLimit)
		errs.within(path+".max", c.Max, max(1, c.Min), limiter.MaxLimit)
	}
	errs.within(path+".lowWater", c.LowWater, 0, max(0, c.Largest()-1))
	errs.within(path+".returnIdleAfter", int64(c.ReturnIdleAfter), 0, int64(limiter.MaxWindow))
}

// Largest returns the most that one lease asks for, unless a single request costs
// more; 0 when nothing is leased.
func (c Consistency) Largest() int64 {
	if c.Size == Fixed {
		return c.Batch
	}
	return c.Max
}
