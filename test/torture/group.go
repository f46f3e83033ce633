package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster/link"
	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
	"github.com/weir-dev/weir/internal/testing/freeport"
)

// A group is Redis servers that fail over by themselves, in pairs: one serves and
// the other one copies it, watched by Sentinels or by each other as a Redis Cluster. All
// have the store's clock, and everyone reaches a server by the link of its own.
type group struct {
	pairs     [][2]*member
	sentinels []*servers.Server
	stop      context.CancelFunc
	watches   sync.WaitGroup
}

// A member is one server of a group.
type member struct {
	server *servers.Server
	link   *link.Link
	bus    string // port for the other nodes of a cluster

	mu     sync.Mutex
	serves []span // in which it may have been a primary
	deaf   []span // in which it stood still, was away or was cut off
}

const (
	sentinels = 3
	slots     = 16384 // parts that a cluster splits the keys into
	watchedAs = "torture"
	failsOver = 500 * time.Millisecond // after which Sentinels take a primary that does not answer for dead
)

// startGroup starts the servers of a store that fails over by itself, and returns when
// each has its copy.
func (w *world) startGroup(ctx context.Context, s *store, env []string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	g := &group{}
	s.group = g
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	for i := range s.pairs {
		var pair [2]*member
		for j := range pair {
			m, err := startMember(ctx, filepath.Join(w.logs, fmt.Sprintf("%s-%d-%d", s.name, i, j)), env, s.pairs > 1)
			if err != nil {
				return err
			}
			pair[j] = m
		}
		g.pairs = append(g.pairs, pair)
	}
	s.running, s.link = g.pairs[0][0].server, g.pairs[0][0].link
	join := g.watch
	s.api = v1alpha1.Store{Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{}}
	if s.pairs > 1 {
		join = g.spread
		s.api.Redis.Cluster = &v1alpha1.RedisCluster{}
		for _, m := range g.members() {
			s.api.Redis.Cluster.Addresses = append(s.api.Redis.Cluster.Addresses, v1alpha1.HostPort(m.link.Address()))
		}
	}
	if err := join(ctx, filepath.Join(w.logs, s.name)); err != nil {
		return err
	}
	if len(g.sentinels) > 0 {
		s.api.Redis.Sentinel = &v1alpha1.RedisSentinel{Primary: watchedAs}
		for _, one := range g.sentinels {
			s.api.Redis.Sentinel.Addresses = append(s.api.Redis.Sentinel.Addresses, v1alpha1.HostPort(one.Address))
		}
	}
	g.look(s)
	return nil
}

// startMember starts a server that others know by the address of its link.
func startMember(ctx context.Context, logs string, env []string, inCluster bool) (*member, error) {
	way, err := link.Open("127.0.0.1:1") // nothing listens there
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(way.Address())
	if err != nil {
		return nil, err
	}
	args := []string{"--replica-announce-ip", host, "--replica-announce-port", port, "--repl-diskless-sync-delay", "0"}
	var bus string
	if inCluster {
		free, err := freeport.Port()
		if err != nil {
			return nil, err
		}
		bus = strconv.Itoa(free)
		args = append(args, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-port", bus,
			"--cluster-announce-ip", host, "--cluster-announce-port", port, "--cluster-allow-replica-migration", "no")
	}
	server, err := servers.RedisWith(ctx, servers.Options{Logs: logs, Env: env, Args: args})
	if err != nil {
		way.Close()
		return nil, err
	}
	way.SetServer(server.Address)
	return &member{server: server, link: way, bus: bus}, nil
}

// watch lets Sentinels look after the one pair.
func (g *group) watch(ctx context.Context, logs string) error {
	primary, replica := g.pairs[0][0], g.pairs[0][1]
	host, port, _ := net.SplitHostPort(primary.link.Address()) // made by a listener
	if err := order(ctx, replica.server, "REPLICAOF", host, port); err != nil {
		return err
	}
	if err := replica.copies(ctx); err != nil {
		return err
	}
	for i := range sentinels {
		s, err := servers.Sentinel(ctx, servers.Options{Logs: filepath.Join(logs, fmt.Sprint(i))}, watchedAs, primary.link.Address(), sentinels/2+1, failsOver)
		if err != nil {
			return err
		}
		g.sentinels = append(g.sentinels, s)
	}
	for _, s := range g.sentinels {
		if err := holds(ctx, s, fmt.Sprintf("slaves=1,sentinels=%d", sentinels), "INFO", "sentinel"); err != nil {
			return err
		}
	}
	return nil
}

// spread makes the pairs a cluster.
func (g *group) spread(ctx context.Context, _ string) error {
	meet := func(m *member) error {
		host, port, _ := net.SplitHostPort(g.pairs[0][0].server.Address) // made by servers
		return order(ctx, m.server, "CLUSTER", "MEET", host, port, g.pairs[0][0].bus)
	}
	for i, pair := range g.pairs {
		primary := pair[0].server
		if err := order(ctx, primary, "CLUSTER", "ADDSLOTSRANGE", i*slots/len(g.pairs), (i+1)*slots/len(g.pairs)-1); err != nil {
			return err
		}
		if err := order(ctx, primary, "CLUSTER", "SET-CONFIG-EPOCH", i+1); err != nil {
			return err
		}
	}
	for _, m := range g.members()[1:] {
		if err := meet(m); err != nil {
			return err
		}
	}
	for _, m := range g.members() {
		for _, text := range []string{"cluster_state:ok", fmt.Sprintf("cluster_known_nodes:%d\r", len(g.members()))} {
			if err := holds(ctx, m.server, text, "CLUSTER", "INFO"); err != nil {
				return err
			}
		}
	}
	for _, pair := range g.pairs {
		if err := pair[1].join(ctx, pair[0]); err != nil {
			return err
		}
	}
	return nil
}

// join makes the server of a cluster the replica of another one.
func (m *member) join(ctx context.Context, primary *member) error {
	id, err := ask(ctx, primary.server, "CLUSTER", "MYID")
	if err != nil {
		return err
	}
	if err := order(ctx, m.server, "CLUSTER", "REPLICATE", id); err != nil {
		return err
	}
	return m.copies(ctx)
}
