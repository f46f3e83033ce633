package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Turns are short, so that a busy moment of the machine is one round of many.
const (
	cpuLead = 100 * time.Millisecond // of a turn, before it counts
	cpuTurn = 400 * time.Millisecond
)

// Goals of the proxy's processor time, beside haproxy's.
const httpGoal, grpcGoal = 1.5, 3

// A cpuCase is a load in which one request always follows another.
type cpuCase struct {
	name string
	goal float64
	open func(w *way) (drive, error)
}

// A drive sends requests over connections of its own.
type drive struct {
	until func(end time.Time) (answered int, err error) // sends until an instant, and waits for the last answer
	close func()
}

func cpuCases() []cpuCase {
	get := []byte("GET /64k HTTP/1.1\r\nHost: app.example\r\n\r\n")
	post := slices.Concat([]byte("POST / HTTP/1.1\r\nHost: app.example\r\nContent-Length: 65536\r\n\r\n"), bytes.Repeat([]byte("x"), 64<<10))
	return []cpuCase{
		{"HTTP/1.1, 1 connection", httpGoal, overHTTP1(1, request)},
		{"HTTP/1.1, 32 connections", httpGoal, overHTTP1(32, request)},
		{"HTTP/1.1, 1,000 connections", httpGoal, overHTTP1(1000, request)},
		{"HTTP/1.1, 32 connections, answers of 64 KiB", httpGoal, overHTTP1(32, get)},
		{"HTTP/1.1, 32 connections, POST of 64 KiB", httpGoal, overHTTP1(32, post)},
		{"gRPC unary, 4 connections with 8 calls each", grpcGoal, overGRPC(4, 8)},
	}
}

// overHTTP1 sends a request over each of n connections, again when it was answered.
func overHTTP1(n int, request []byte) func(w *way) (drive, error) {
	return func(w *way) (drive, error) {
		all, err := dial(w.address, n, request)
		if err != nil {
			return drive{}, err
		}
		return drive{
			until: func(end time.Time) (int, error) { return closedLoop(all, end) },
			close: func() { hangUp(all) },
		}, nil
	}
}

// overGRPC keeps a number of calls under way over each of n connections.
func overGRPC(n, calls int) func(w *way) (drive, error) {
	return func(w *way) (drive, error) {
		all := make([]*asker, n)
		for i := range all {
			var err error
			if all[i], err = newAsker(w.calls); err != nil {
				return drive{}, err
			}
		}
		messages := [][]byte{message("keys", userKey, "one")}
		return drive{
			until: func(end time.Time) (int, error) {
				return together(all, func(a *asker) (answered int, err error) {
					err = a.keep(calls, time.Time{}, end, messages, func() int { return 0 }, func(answer) { answered++ })
					return answered, err
				})
			},
			close: func() {
				for _, a := range all {
					_ = a.conn.Close()
				}
			},
		}, nil
	}
}

// costs are those of a way, by round.
type costs struct{ wall, processor []float64 } // ns per request

// overProxyCPU shows the processor time that a request takes in each proxy.
func overProxyCPU(show func(*table)) error {
	w, err := openWays()
	if err != nil {
		return err
	}
	defer w.close()
	for _, opened := range w.all {
		hangUp(opened.callers)
	}
	w.all = slices.Delete(w.all, barelyToo, barelyToo+1)
	for _, c := range cpuCases() {
		t, err := w.spend(c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		show(t)
	}
	return nil
}

// spend lets the ways take turns under a load, in each round in another order.
func (w *ways) spend(c cpuCase) (*table, error) {
	drives := make([]drive, len(w.all))
	for i, way := range w.all {
		var err error
		if drives[i], err = c.open(way); err != nil {
			return nil, fmt.Errorf("%s: %w", way.name, err)
		}
		defer drives[i].close()
	}
	took := make([]costs, len(w.all))
	order := rand.New(rand.NewPCG(5, 6))
	for range rounds {
		for _, i := range order.Perm(len(w.all)) {
			wall, processor, err := drives[i].turn(w.all[i].pid)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.all[i].name, err)
			}
			took[i].wall = append(took[i].wall, wall)
			took[i].processor = append(took[i].processor, processor)
		}
	}
	return w.costTable(c, took), nil
}

// turn returns what a request took on the clock, and of the processors in a process.
func (d drive) turn(pid int) (wall, processor float64, err error) {
	_, early := d.until(time.Now().Add(cpuLead))
	before, err := processorTime([]int{pid})
	if err := errors.Join(early, err); err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	answered, err := d.until(begin.Add(cpuTurn))
	took := time.Since(begin)
	after, broken := processorTime([]int{pid})
	if err := errors.Join(err, broken); err != nil {
		return 0, 0, err
	}
	return float64(took) / float64(answered), float64(after-before) / float64(answered), nil
}

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
