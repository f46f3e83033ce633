package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/pkg/federation"
	postgrescoordinator "github.com/weir-dev/weir/pkg/federation/coordinator/postgres"
	rediscoordinator "github.com/weir-dev/weir/pkg/federation/coordinator/redis"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/postgres"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// playRegion is a region: it reads an order, and writes a report.
func playRegion(ctx context.Context, in io.Reader, out io.Writer) error {
	var o order
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	counted, err := o.play(ctx)
	if err != nil {
		return err
	}
	_, err = out.Write(encode(counted))
	return err
}

// play is what the order is.
func (o *order) play(ctx context.Context) (report, error) {
	if o.Keyed {
		return o.playKeyed(ctx)
	}
	coordinator, closeWay, err := o.Way.open()
	if err != nil {
		return report{}, err
	}
	defer closeWay()
	region := federation.New(federation.Config{
		ID: o.Budget, Member: o.Member, Params: o.Params,
		Batch: federation.Batch{Fixed: o.Batch > 0, Size: o.Batch},
	}, coordinator, nil)
	params := limiter.Params{Rates: []limiter.Rate{{Limit: o.Params.Limit, Window: o.Params.Window}}}
	before := region.Stats().Commands
	counted, err := o.offer(ctx, func() string { return "" }, func(string) (limiter.Result, error) {
		return region.Apply(ctx, store.Key{}, params, limiter.Command{Op: limiter.Take, Min: 1, Want: 1})
	})
	counted.Commands = region.Stats().Commands - before
	end, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	region.Close(end)
	return counted, err
}

// open returns the coordinator at the end of the way, and what closes it.
func (w *way) open() (federation.Coordinator, func(), error) {
	switch w.Kind {
	case redisKind:
		s := redis.Dial(w.Address)
		return rediscoordinator.New(s), func() { _ = s.Close() }, nil
	case postgresKind:
		s, err := postgres.Dial(postgres.Options{Address: w.Address, User: postgresUser, Database: "postgres"})
		if err != nil {
			return nil, nil, err
		}
		return postgrescoordinator.New(s), func() { _ = s.Close() }, nil
	default:
		client, err := new(hub.Connections).Open(w.Address, w.Secret)
		if err != nil {
			return nil, nil, err
		}
		return client, client.Close, nil
	}
}

// offer sends requests at an even pace, without waiting for each other, and counts their
// results by value and by the window that they were charged to.
func (o *order) offer(ctx context.Context, next func() string, decide func(hash string) (limiter.Result, error)) (report, error) {
	window := time.Duration(o.Params.Window) * time.Microsecond
	c := &counter{window: window, tallies: map[tally]*tally{}}
	var requests sync.WaitGroup
	for n := range o.Offered * o.Windows {
		due := o.Begin.Add(time.Duration(n) * window / time.Duration(o.Offered))
		select {
		case <-ctx.Done():
			return report{}, ctx.Err()
		case <-time.After(time.Until(due)):
		}
		hash := next()
		requests.Go(func() {
			asked := time.Now()
			r, err := decide(hash)
			c.count(hash, asked, r, err)
		})
	}
	requests.Wait()
	return c.report(), nil
}

// A counter counts decisions.
type counter struct {
	window  time.Duration
	mu      sync.Mutex
	tallies map[tally]*tally // by value and window
	waits   []time.Duration
}

func (c *counter) count(hash string, asked time.Time, r limiter.Result, err error) {
	wait := time.Since(asked)
	index := asked.UnixMicro() / c.window.Microseconds()
	granted := err == nil && r.Granted > 0
	if granted {
		index = r.Windows.Open[0].Index
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := tally{Hash: hash, Index: index}
	t := c.tallies[at]
	if t == nil {
		t = &tally{Hash: hash, Index: index}
		c.tallies[at] = t
	}
	if granted {
		t.Admitted++
	} else {
		t.Refused++
	}
	c.waits = append(c.waits, wait)
}

func (c *counter) report() report {
	slices.Sort(c.waits)
	out := report{Waits: c.waits}
	for _, t := range c.tallies {
		out.Tallies = append(out.Tallies, *t)
	}
	return out
}
