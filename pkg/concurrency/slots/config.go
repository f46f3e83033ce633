package slots

import (
	"errors"
	"fmt"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Config says how slots are handed out.
type Config struct {
	Partitions []Partition // at most MaxPartitions
	Queue      Queue       // zero: a request that finds no slot is refused at once
}

// MaxPartitions bounds how many partitions there may be.
const MaxPartitions = 16

// A Partition keeps a part of the ceiling for some requests.
type Partition struct {
	Name              string // unique; what is in flight keeps its partition by it over Reconfigure
	GuaranteedPercent int    // of the ceiling, rounded down; 0 to 100, all together at most 100
}

// Rest is the partition of requests that belong to none. Nothing is kept for it.
const Rest = -1

// Queue bounds waiting.
type Queue struct {
	MaxLength int            // of all partitions together, at least 0
	MaxWait   limiter.Micros // positive when MaxLength is
}

// Validate reports what is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	if n := len(c.Partitions); n > MaxPartitions {
		errs = append(errs, fmt.Errorf("partitions are %d, over %d", n, MaxPartitions))
	}
	sum, names := 0, map[string]bool{}
	for i, p := range c.Partitions {
		if p.GuaranteedPercent < 0 || p.GuaranteedPercent > 100 {
			errs = append(errs, fmt.Errorf("partitions[%d] guaranteedPercent is %d, outside 0 to 100", i, p.GuaranteedPercent))
		}
		if names[p.Name] {
			errs = append(errs, fmt.Errorf("partitions[%d] name %q is used twice", i, p.Name))
		}
		names[p.Name] = true
		sum += p.GuaranteedPercent
	}
	if sum > 100 {
		errs = append(errs, fmt.Errorf("partitions guarantee %d percent together, over 100", sum))
	}
	switch {
	case c.Queue.MaxLength < 0:
		errs = append(errs, fmt.Errorf("queue maxLength is %d, below 0", c.Queue.MaxLength))
	case c.Queue.MaxLength > 0 && c.Queue.MaxWait <= 0:
		errs = append(errs, fmt.Errorf("queue maxWait is %dµs, not positive", c.Queue.MaxWait))
	}
	return errors.Join(errs...)
}
