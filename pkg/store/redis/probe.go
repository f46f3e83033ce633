package redis

import (
	"bufio"
	"context"
	"slices"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// Probe returns what the servers say of themselves as they are configured now: the
// guarantees are the weakest of a cluster's nodes. It proves on the way that they
// decide: the error is that of Apply.
func (s *Store) Probe(ctx context.Context) (store.Facts, error) {
	hard := store.Guarantee{Grade: store.Hard}
	facts := store.Facts{Volatile: store.Keeping{Guarantee: hard}, Durable: store.Keeping{Guarantee: hard}, Lossless: true}
	var mu sync.Mutex
	err := s.eachPrimary(ctx, func(ctx context.Context, node goredis.Cmdable) error {
		is, err := s.inspect(ctx, node)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		facts.Volatile.Guarantee = weaker(facts.Volatile.Guarantee, is.guarantee())
		facts.Durable.Guarantee = weaker(facts.Durable.Guarantee, is.durable())
		facts.Lossless = facts.Lossless && is.forgetful() == ""
		return nil
	})
	if err != nil {
		return store.Facts{}, s.explain(err)
	}
	stamps, err := s.stamp(ctx, facts.Lossless)
	if err != nil {
		return store.Facts{}, err
	}
	for _, stamp := range stamps {
		facts.Lossless = facts.Lossless && !stamp.copied
	}
	for i, stamp := range stamps {
		facts.Now = max(facts.Now, stamp.now)
		if i == 0 || stamp.now < facts.Oldest {
			facts.Oldest = stamp.now
		}
		facts.Volatile.Memories = insert(facts.Volatile.Memories, stamp.volatile)
		if facts.Lossless {
			facts.Durable.Memories = insert(facts.Durable.Memories, stamp.durable)
		} else {
			facts.Durable.Memories = insert(facts.Durable.Memories, stamp.volatile)
		}
	}
	return facts, nil
}

func insert(list []limiter.MemoryID, m limiter.MemoryID) []limiter.MemoryID {
	if slices.Contains(list, m) {
		return list
	}
	return append(list, m)
}

// weaker returns the guarantee of the lower grade, and of equal ones the one that has
// a reason.
func weaker(g, o store.Guarantee) store.Guarantee {
	if g.Grade == o.Grade && g.Reason == "" {
		return o
	}
	return g.Weaker(o)
}

// eachPrimary calls fn for every node that owns counters, at once for those of a
// cluster.
func (s *Store) eachPrimary(ctx context.Context, fn func(context.Context, goredis.Cmdable) error) error {
	if cluster, ok := s.client.(*goredis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *goredis.Client) error {
			return fn(ctx, node)
		})
	}
	return fn(ctx, s.client)
}

// inspect asks a server for what it reports about itself, in one round trip. Fields that
// its ACL or its provider keeps secret are left out.
func (s *Store) inspect(ctx context.Context, node goredis.Cmdable) (server, error) {
	_, cluster := s.client.(*goredis.ClusterClient)
	is := server{cluster: cluster, watched: s.watched, overHTTP: s.rest != nil, info: map[string]string{}}
	sections := []string{"memory", "replication", "persistence"}
	if is.overHTTP {
		sections = append(sections, "cluster") // see lua/leader.lua
	}
	texts := make([]*goredis.StringCmd, len(sections))
	var config *goredis.MapStringStringCmd
	_, _ = node.Pipelined(ctx, func(pipe goredis.Pipeliner) error { // each has its error
		for i, section := range sections {
			texts[i] = pipe.Info(ctx, section)
		}
		config = pipe.ConfigGet(ctx, "*append*")
		return nil
	})
	for _, text := range texts {
		if err := text.Err(); err != nil {
			return is, err
		}
		parseInfo(text.Val(), is.info)
	}
	if _, refused := config.Err().(goredis.Error); config.Err() != nil && !refused { //nolint:errorlint // see explain
		return is, config.Err()
	}
	is.config = config.Val()
	return is, nil
}

// parseInfo adds the lines "name:value" of an INFO reply to facts.
func parseInfo(text string, facts map[string]string) {
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok {
			facts[name] = value
		}
	}
}
