package twotier

import (
	"errors"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// settings are the configuration in force and the store it is in force for. They are
// immutable: another configuration or store is other settings, and what was asked
// under the old ones is known by that.
type settings struct {
	Config
	*account.Rules
	breaker *Breaker
	blank   *leaseInfo // of a key that nothing is known of
	// swapped is the instant until which another store than the breaker's was asked; past
	// when none ever was.
	swapped      int64
	pendingSince time.Time
}

func newSettings(l *Limiter, cfg Config, breaker *Breaker) *settings {
	s := &settings{Config: cfg.normalize(), breaker: breaker, swapped: account.Past, pendingSince: time.Now()}
	s.Rules = rulesOf(&s.Config)
	s.blank = &leaseInfo{limiter: l, settings: s, lowWater: neverLow, ends: account.Past, Refusal: account.NoRefusal}
	return s
}

// rulesOf returns the rules by which the accounts of a normalized configuration are kept.
func rulesOf(c *Config) *account.Rules {
	return account.NewRules(account.Config{
		Params: c.Params, Leases: c.Mode == Leased,
		Learns: c.Size.Type != Fixed, Predicts: c.Size.Type == Predictive,
		Batch: c.Size.Batch, Min: c.Size.Min, Max: c.Size.Max,
		CarryOver: c.Expiry == CarryOver, LowWater: c.LowWater,
	})
}

// paramsOf returns the parameters of a value of the key.
func (s *settings) paramsOf(value string) limiter.Params {
	if p, ok := s.Overrides[value]; ok {
		return p
	}
	return s.Params
}

var errPending = errors.New("the limit is new, and the controller has not been able to ask the store in which memory it begins")

// unavailable returns why no take is asked for at present, nil when one may be.
func (s *settings) unavailable() error {
	if s.Pending {
		return &store.UnavailableError{Store: "the store of " + s.Scope.String(), Cause: errPending}
	}
	return s.breaker.unavailable()
}
