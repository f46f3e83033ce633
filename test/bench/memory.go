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
)

// visitors is how many keys are asked for once each, and how many a sidecar may track.
const visitors = 1_000_000

// seenOnce shows the memory for keys that are each asked for once, by one process or
// another.
func seenOnce(all []*service, show func(*table)) error {
	messages := make([][]byte, visitors)
	for i, name := range makeKeys(visitors) {
		messages[i] = message("keys", visitorKey, name)
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
	for i, a := range s.askers {
		wait.Go(func() {
			next := i - len(s.askers)
			failed[i] = a.keep(callsEach, time.Time{}, time.Now().Add(10*time.Minute), messages, func() int {
				if next += len(s.askers); next < len(messages) {
					return next
				}
				return -1
			}, func(answer) {})
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

// idleConnections are enough that what a process needs for itself does not count.
const idleConnections = 2000

// idleConnectionGoal is in bytes.
const idleConnectionGoal = 4 << 10

// idleMemory shows by how much each proxy grows with connections that have served a request.
func (w *ways) idleMemory() (*table, error) {
	t := &table{
		title: "Memory of an idle connection",
		note: fmt.Sprintf("By how much the resident memory of a process grows with %d connections that stay open behind a request each, before any other load. "+
			"What the kernel keeps for a connection is not counted.", idleConnections),
		head: []string{"", "KiB per connection", ""},
	}
	for i, way := range w.all[straight+1:] {
		time.Sleep(2 * time.Second) // what the start left behind is collected
		before, err := residenceOf(way.pid)
		if err != nil {
			return nil, err
		}
		idle, err := dialInTurn(way.address, idleConnections)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", way.name, err)
		}
		time.Sleep(2 * time.Second)
		after, err := residenceOf(way.pid)
		hangUp(idle)
		if err != nil {
			return nil, err
		}
		each := (after.resident - before.resident) / idleConnections
		verdict := ""
		if i == sidecar-2 { // without the direct way, and one of the bare ones
			verdict = fmt.Sprintf("goal ≤ %d KiB: %s", idleConnectionGoal>>10, met(each <= idleConnectionGoal))
		}
		t.add(way.name, fmt.Sprintf("%.1f", each/1024), verdict)
	}
	return t, nil
}

// dialInTurn opens connections of which few send their request at once, so that all of them
// together are never busy.
func dialInTurn(address string, n int) (all []caller, err error) {
	for len(all) < n {
		more, err := dial(address, min(callers, n-len(all)), request)
		if err != nil {
			hangUp(all)
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}
