package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/devcluster/clock"
	"github.com/weir-dev/weir/internal/devcluster/disk"
	"github.com/weir-dev/weir/internal/devcluster/link"
	"github.com/weir-dev/weir/internal/devcluster/servers"
)

// A server is a kind of store.
type server struct {
	name    string
	isRedis bool
	replica bool     // it has one
	args    []string // of a Redis
	shops   []terms  // what they keep there
}

// writes reports whether it keeps anything in files.
func (s server) writes() bool { return !s.isRedis || len(s.args) > 0 }

// known are the servers that keep counters, three of which a run has, beside the
// controller's own store.
func known() []server {
	shop, wait, resume := short("shop"), short("wait"), short("resume")
	wait.memory, resume.memory, resume.onLoss = v1alpha1.DurableMemory, v1alpha1.DurableMemory, v1alpha1.ResumeOnMemoryLoss
	share, open := short("share"), short("open")
	share.action, open.action = v1alpha1.LocalShareAction, v1alpha1.AllowAction
	return []server{
		{name: "redis-kept", isRedis: true, args: []string{"--appendonly", "yes", "--appendfsync", "always"}, shops: []terms{shop, aDay(), share}},
		{name: "redis-lost", isRedis: true, shops: []terms{shop, open}},
		{name: "redis-often", isRedis: true, args: []string{"--appendonly", "yes", "--appendfsync", "everysec"}, shops: []terms{wait, resume}},
		{name: "redis-copied", isRedis: true, replica: true, shops: []terms{shop, wait}},
		{name: "postgres", shops: []terms{shop, aDay(), wait}},
		{name: "postgres-copied", replica: true, shops: []terms{shop, wait}},
	}
}

// short returns the terms of most shops, which have short windows.
func short(name string) terms {
	return terms{name: name, memory: v1alpha1.AutoMemory, onLoss: v1alpha1.WaitOnMemoryLoss, action: v1alpha1.DenyAction, window: window}
}

func aDay() terms {
	day := short("day")
	day.window = 24 * time.Hour
	return day
}

// startStores starts some of the servers that are known: which ones follows from the seed.
func (w *world) startStores(ctx context.Context) error {
	all := known()
	chosen := w.random.Perm(len(all))[:servedBy]
	slices.Sort(chosen)
	for _, i := range chosen {
		s, err := w.startStore(ctx, all[i])
		if err != nil {
			return fmt.Errorf("%s: %w", all[i].name, err)
		}
		w.stores = append(w.stores, s)
	}
	w.stores = append(w.stores, &store{
		server: server{name: "controller", shops: []terms{short("shop"), aDay()}}, spec: "type: Controller", asked: &w.leads.clock,
	})
	return nil
}

// servedBy is how many servers a run has.
const servedBy = 3

// startStore starts a server, and its replica.
func (w *world) startStore(ctx context.Context, of server) (s *store, err error) {
	offset := time.Duration(w.random.Int64N(int64(2*time.Hour))) - time.Hour
	s = &store{server: of}
	if s.clock, err = clock.New(filepath.Join(w.clocks, of.name), offset, w.random.Int64N(200_000)-100_000); err != nil {
		return nil, err
	}
	if s.disk, err = disk.New(filepath.Join(w.clocks, of.name+"-disk")); err != nil {
		return nil, err
	}
	env := slices.Concat(s.clock.Environment(), s.disk.Environment(), []string{w.preload})
	start := func(logs string) (*servers.Server, error) {
		if of.isRedis {
			return servers.RedisWith(ctx, logs, env, of.args...)
		}
		return servers.PostgresWith(ctx, logs, env)
	}
	if s.running, err = start(filepath.Join(w.logs, of.name)); err != nil {
		return nil, err
	}
	if s.link, err = link.Open(s.running.Address); err != nil {
		return nil, err
	}
	s.spec = fmt.Sprintf("type: Redis, redis: {address: %q, tls: Disabled}", s.link.Address())
	if !of.isRedis {
		s.spec = fmt.Sprintf("type: Postgres, postgres: {address: %q, database: %s, tls: Disabled, secretRef: {name: postgres}}",
			s.link.Address(), servers.PostgresDatabase)
	}
	if !of.replica {
		return s, nil
	}
	if s.copy, err = start(filepath.Join(w.logs, of.name+"-replica")); err != nil {
		return nil, err
	}
	return s, s.follow(ctx)
}
