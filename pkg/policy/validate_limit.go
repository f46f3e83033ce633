package policy

import (
	"slices"

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
