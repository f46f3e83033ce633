package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/test/bench/traffic"
)

// visitors is how many keys are asked for once each, and how many a sidecar may track.
const visitors = 1_000_000

// seenOnce shows the memory for keys that are each asked for once, by one process or
// another.
func seenOnce(all []*service, show func(*table)) error {
	messages := make([][]byte, visitors)
	for i, name := range makeKeys(visitors) {
		messages[i] = traffic.Message("keys", visitorKey, name)
	}
	t := &table{
		title: "Redis, 1,000,000 keys, each seen once",
		note: fmt.Sprintf("A limit of %d a minute for each, %d processes, one service after the other. Bytes are those that were added until all had been asked, "+
			"divided by the keys: of the processes those of their own resident memory, of Redis its used_memory. Keys of windows that ended meanwhile may be gone.", userLimit, fleet),
		head: []string{"", "seconds", "bytes per key in the processes", "bytes per key in Redis"},
	}
	for _, s := range all {
		before, err := s.holds()
		if err != nil {
			return err
		}
		begin := time.Now()
		if err := s.visit(messages); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		took := time.Since(begin)
		after, err := s.holds()
		if err != nil {
			return err
		}
		t.add(s.name, fmt.Sprintf("%.0f", took.Seconds()),
			fmt.Sprintf("%.0f", max(0, after.processes-before.processes)/visitors), fmt.Sprintf("%.0f", (after.store-before.store)/visitors))
	}
	show(t)
	return nil
}

// visit asks for every key once.
func (s *service) visit(messages [][]byte) error {
	var wait sync.WaitGroup
	failed := make([]error, len(s.askers))
	for i, idle := range s.askers {
		// A connection over which nobody answered pings, while another service was asked, is closed.
		a, err := traffic.NewAsker(idle.Address())
		if err != nil {
			return err
		}
		defer a.Close()
		wait.Go(func() {
			next := i - len(s.askers)
			failed[i] = a.Keep(callsEach, time.Time{}, time.Now().Add(10*time.Minute), messages, func() int {
				if next += len(s.askers); next < len(messages) {
					return next
				}
				return -1
			}, func(traffic.Answer) {})
		})
	}
	wait.Wait()
	return errors.Join(failed...)
}

// holding is the memory of a service, in bytes.
type holding struct{ processes, store float64 }

func (s *service) holds() (h holding, err error) {
	for _, pid := range s.pids[1:] {
		r, err := residenceOf(pid)
		if err != nil {
			return h, err
		}
		h.processes += r.own
	}
	h.store, err = usedMemory(s.redis)
	return h, err
}

var usedMemoryIs = regexp.MustCompile(`(?m)^used_memory:(\d+)`)

// usedMemory returns how much memory a Redis has given to what it holds.
func usedMemory(client *goredis.Client) (float64, error) {
	text, err := client.Info(context.Background(), "memory").Result()
	if err != nil {
		return 0, err
	}
	found := usedMemoryIs.FindStringSubmatch(text)
	if found == nil {
		return 0, errors.New("redis does not say how much memory it uses")
	}
	return strconv.ParseFloat(found[1], 64)
}
