package policy

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/concurrency/slots"
)

// A CompiledPool is the pool of a set, ready to judge requests.
type CompiledPool struct {
	Pool *Pool

	exempt     matchers
	ignore     matchers
	partitions []matchers
}

func compilePool(p *Pool) (*CompiledPool, error) {
	c := &CompiledPool{Pool: p}
	var err error
	if c.exempt, err = compileMatches("exempt", p.Exempt, matching{}); err != nil {
		return nil, err
	}
	if c.ignore, err = compileMatches("algorithm.ignore", p.Algorithm.Ignore, matching{}); err != nil {
		return nil, err
	}
	for i := range p.Partitions {
		matches, err := compileMatches("match", p.Partitions[i].Match, matching{})
		if err != nil {
			return nil, fmt.Errorf("%s.%w", entry("partitions", i), err)
		}
		c.partitions = append(c.partitions, matches)
	}
	return c, nil
}

// Shadow reports whether requests that find no slot are counted and let pass.
func (c *CompiledPool) Shadow() bool { return c.Pool.Mode == Shadow }

// Exempt reports whether r needs no slot.
func (c *CompiledPool) Exempt(r *Request) bool { return c.exempt.inEveryReading(r) }

// Ignore reports whether the latency of r says nothing of the backend's load.
func (c *CompiledPool) Ignore(r *Request) bool { return c.ignore.inEveryReading(r) }

// Partition returns the index of the partition that r belongs to, the first that
// matches it, and slots.Rest when none does. Its path is read decoded and clean: every
// partition is within the limit of the pool, so no spelling escapes that.
func (c *CompiledPool) Partition(r *Request) int {
	for i := range c.partitions {
		if matches := &c.partitions[i]; matches.none() || matches.inPlainReading(r) {
			return i
		}
	}
	return slots.Rest
}
