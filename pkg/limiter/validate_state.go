package limiter

import (
	"errors"
	"fmt"
)

// Validate reports a state that no Step has made, as one that was damaged where it
// was kept. Step stays exact on all others.
func (s State) Validate() error {
	if s.N < 1 || s.N > MaxRates {
		return fmt.Errorf("a state has 1 to %d meters, not %d", MaxRates, s.N)
	}
	if s.Generation < 0 || s.Generation > MaxGeneration {
		return fmt.Errorf("generation is %d, outside 0 to %d", s.Generation, MaxGeneration)
	}
	if s.Algorithm > LeakyBucket {
		return fmt.Errorf("algorithm is %d, which is unknown", s.Algorithm)
	}
	if err := errors.Join(validInstant("expires", s.Expires), validInstant("began", s.Began)); err != nil {
		return err
	}
	p := Params{Algorithm: s.Algorithm}
	for i, m := range s.Slice() {
		p.Rates = append(p.Rates, m.Rate)
		if err := m.validate(p); err != nil {
			return fmt.Errorf("meters[%d]: %w", i, err)
		}
	}
	return errors.Join(p.validateRates(), s.validateTenants())
}

func (m Meter) validate(p Params) error {
	if err := p.validateRate(m.Rate); err != nil {
		return fmt.Errorf("rate%w", err)
	}
	if m.Used < 0 || m.Used > MaxExact {
		return fmt.Errorf("used is %d, outside 0 to %d", m.Used, MaxExact)
	}
	if p.Algorithm.machine() != slidingMachine && m.Log != nil {
		return fmt.Errorf("%v has no log", p.Algorithm)
	}
	switch p.Algorithm.machine() {
	case windowMachine:
		if first, last := m.Indices(); m.Index < first || m.Index > last {
			return fmt.Errorf("index is %d, outside %d to %d", m.Index, first, last)
		}
		return nil
	case slidingMachine:
		return errors.Join(validInstant("index", Instant(m.Index)), m.validateLog())
	default:
		return errors.Join(validInstant("index", Instant(m.Index)), p.validateBucket(m.Rate))
	}
}

func (m Meter) validateLog() error {
	if len(m.Log) > MaxLog {
		return fmt.Errorf("the log has %d entries, more than %d", len(m.Log), MaxLog)
	}
	var before Instant
	left := MaxExact
	for i, e := range m.Log {
		if e.At < before || e.At > MaxInstant+2*Instant(MaxWindow) {
			return fmt.Errorf("log[%d].at is %d, outside %d to the year 2112", i, e.At, before)
		}
		if e.Count < 1 || e.Count > left {
			return fmt.Errorf("log[%d].count is %d, outside 1 to %d", i, e.Count, left)
		}
		before, left = e.At, left-e.Count
	}
	return nil
}

func (s State) validateTenants() error {
	if s.Tenants == nil {
		return nil
	}
	if s.N != 1 || !s.Algorithm.WindowCoupled() {
		return errors.New("tenants share one window")
	}
	if most := MaxTenants + MaxDeclared + 1; len(s.Tenants) > most {
		return fmt.Errorf("%d tenants, more than %d", len(s.Tenants), most)
	}
	for i, t := range s.Tenants {
		switch {
		case i > 0 && t.Tenant <= s.Tenants[i-1].Tenant:
			return fmt.Errorf("tenants[%d] is out of order", i)
		case t.Used < Lately || t.Used > MaxExact:
			return fmt.Errorf("tenants[%d].used is %d, outside %d to %d", i, t.Used, Lately, MaxExact)
		}
	}
	return nil
}

// validInstant allows for instants ahead of the clock: the ends of lifetimes.
func validInstant(name string, t Instant) error {
	if t < 0 || t > MaxInstant+2*Instant(MaxWindow) {
		return fmt.Errorf("%s is %d, outside the years 1970 to 2112", name, t)
	}
	return nil
}
