package main

import (
	"errors"
	"sync"
	"time"
)

// closedLoop sends the next request of each caller when its last one was answered, until an
// instant but at least one, and returns how many were answered.
func closedLoop(all []caller, end time.Time) (answered int, err error) {
	each := make([]*caller, len(all))
	for i := range all {
		each[i] = &all[i]
	}
	return together(each, func(c *caller) (answered int, err error) {
		for {
			if err := c.call(); err != nil {
				return answered, err
			}
			if answered++; !time.Now().Before(end) {
				return answered, nil
			}
		}
	})
}

// together calls do for all at once, and adds up what it returns.
func together[T any](all []T, do func(T) (int, error)) (sum int, err error) {
	each, failed := make([]int, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	for i, one := range all {
		running.Go(func() { each[i], failed[i] = do(one) })
	}
	running.Wait()
	for _, n := range each {
		sum += n
	}
	return sum, errors.Join(failed...)
}
