package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster/clock"
	"github.com/weir-dev/weir/internal/testing/devcluster/disk"
	"github.com/weir-dev/weir/internal/testing/devcluster/link"
	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

// A server is a kind of store.
type server struct {
	name    string
	isRedis bool
	replica bool     // it has one
	pairs   int      // of a Redis that fails over by itself: one behind Sentinels, or those of a cluster
	args    []string // of a Redis
	shops   []terms  // what they keep there
}

// writes reports whether it keeps anything in files.
func (s server) writes() bool { return !s.isRedis || len(s.args) > 0 }

// known are the servers that keep counters. A run has three of them, beside the
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
		{name: "redis-sentinel", isRedis: true, pairs: 1, shops: []terms{shop, wait}},
		{name: "redis-cluster", isRedis: true, pairs: 3, shops: []terms{shop, wait}},
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
	n := servedBy
	if w.federated {
		n = 1
	}
	chosen := w.random.Perm(len(all))[:n]
	slices.Sort(chosen)
	for _, i := range chosen {
		s, err := w.startStore(ctx, all[i])
		if err != nil {
			return fmt.Errorf("%s: %w", all[i].name, err)
		}
		s.number = len(w.stores)
		w.stores = append(w.stores, s)
	}
	w.stores = append(w.stores, &store{
		server: server{name: "controller", shops: []terms{short("shop"), aDay()}}, number: len(w.stores),
		api: v1alpha1.Store{Type: v1alpha1.ControllerStore}, asked: &w.sites[0].leads.clock,
	})
	return nil
}

// servedBy is how many servers a run has with one cluster; with two it has one.
const servedBy = 3

// startStore starts a server, and its replica.
func (w *world) startStore(ctx context.Context, of server) (s *store, err error) {
	// The clocks of two stores between which a policy is moved may show the same windows.
	most := []time.Duration{time.Hour, 20 * time.Second}[w.random.IntN(2)]
	offset := time.Duration(w.random.Int64N(int64(2*most))) - most
	s = &store{server: of}
	if s.clock, err = clock.New(filepath.Join(w.clocks, of.name), offset, w.random.Int64N(200_000)-100_000); err != nil {
		return nil, err
	}
	if s.disk, err = disk.New(filepath.Join(w.clocks, of.name+"-disk")); err != nil {
		return nil, err
	}
	env := slices.Concat(s.clock.Environment(), s.disk.Environment(), []string{w.preload})
	if of.pairs > 0 {
		return s, w.startGroup(ctx, s, env)
	}
	start := func(logs string) (*servers.Server, error) {
		if of.isRedis {
			return servers.RedisWith(ctx, servers.Options{Logs: logs, Env: env, Args: of.args})
		}
		return servers.PostgresWith(ctx, servers.Options{Logs: logs, Env: env})
	}
	if s.running, err = start(filepath.Join(w.logs, of.name)); err != nil {
		return nil, err
	}
	if s.link, err = link.Open(s.running.Address); err != nil {
		return nil, err
	}
	s.api = v1alpha1.Store{Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{Address: v1alpha1.HostPort(s.link.Address())}}
	if !of.isRedis {
		s.api = v1alpha1.Store{Type: v1alpha1.PostgresStoreType, Postgres: &v1alpha1.PostgresStore{
			Address: v1alpha1.HostPort(s.link.Address()), Database: servers.PostgresDatabase, TLS: v1alpha1.TLSDisabled,
			SecretRef: &v1alpha1.SecretReference{Name: "postgres"},
		}}
	}
	if !of.replica {
		return s, nil
	}
	if s.copy, err = start(filepath.Join(w.logs, of.name+"-replica")); err != nil {
		return nil, err
	}
	return s, s.follow(ctx)
}
