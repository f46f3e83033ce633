package policy

import (
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/pkg/limiter"
)

var (
	secretName   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	sentinelName = regexp.MustCompile(`^[-._A-Za-z0-9]{1,128}$`)
	databaseName = regexp.MustCompile(`^[-_$A-Za-z0-9]{1,63}$`)
)

func (s Store) validate(errs *problems, path string) {
	oneOf(errs, path+".type", s.Type, ControllerStore, RedisStore, PostgresStore)
	switch s.Type {
	case RedisStore:
		s.validateRedis(errs, path)
	case PostgresStore:
		s.validatePostgres(errs, path)
	default:
		if s != (Store{Type: s.Type}) {
			errs.add(path, "names a server: only types Redis and Postgres have one")
		}
	}
	if s.Secret != "" && !secretName.MatchString(s.Secret) {
		errs.add(path+".secret", "is %q: write namespace/name", s.Secret)
	}
	if s.SecretVersion != "" && s.Secret == "" {
		errs.add(path+".secretVersion", "is %q, but there is no secret", s.SecretVersion)
	}
}

func (s Store) validateRedis(errs *problems, path string) {
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
	case s.Sentinel != "" && !sentinelName.MatchString(s.Sentinel):
		errs.add(path+".sentinel", "is %q: use letters, digits, dots, dashes and underscores", s.Sentinel)
	case len(addresses) > 1 && !s.Cluster && s.Sentinel == "":
		errs.add(path+".address", "names %d servers: only a cluster and Sentinels have several", len(addresses))
	}
	if s.Database != "" {
		errs.add(path+".database", "is %q: only type Postgres has a database", s.Database)
	}
}

func (s Store) validatePostgres(errs *problems, path string) {
	if !isHostPort(s.Address) && !isHostPort(s.Address+":5432") {
		errs.add(path+".address", "is %q: write host or host:port", s.Address)
	}
	if !databaseName.MatchString(s.Database) {
		errs.add(path+".database", "is %q: use 1 to 63 letters, digits, dashes and underscores", s.Database)
	}
	if s.Cluster || s.Sentinel != "" {
		errs.add(path, "has a cluster or Sentinels: only type Redis has them")
	}
}

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
