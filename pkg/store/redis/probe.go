package redis

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/pkg/store"
)

// Probe reports what the servers guarantee as they are configured now, the
// weakest of a cluster's nodes. It proves on the way that they decide: the error
// is that of Apply.
func (s *Store) Probe(ctx context.Context) (store.Guarantee, error) {
	if err := s.Warm(ctx); err != nil {
		return store.Guarantee{}, err
	}
	weakest := store.Guarantee{Grade: store.Hard}
	var mu sync.Mutex
	err := s.eachPrimary(ctx, func(ctx context.Context, node goredis.Cmdable) error {
		g, err := guarantee(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		weakest = weakest.Weaker(g)
		return err
	})
	if err != nil {
		return store.Guarantee{}, s.explain(err)
	}
	return weakest, nil
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

func guarantee(ctx context.Context, node goredis.Cmdable) (store.Guarantee, error) {
	facts := map[string]string{}
	for _, section := range []string{"memory", "replication"} {
		text, err := node.Info(ctx, section).Result()
		if err != nil {
			return store.Guarantee{}, err
		}
		parseInfo(text, facts)
	}
	return judge(facts), nil
}

// judge grades a server by what INFO says of it.
func judge(facts map[string]string) store.Guarantee {
	if policy := facts["maxmemory_policy"]; policy != "noeviction" {
		return store.Guarantee{
			Grade:  store.BestEffort,
			Reason: fmt.Sprintf("maxmemory-policy is %q, so counters may be evicted; set it to noeviction", policy),
		}
	}
	if replicas := facts["connected_slaves"]; replicas != "0" {
		return store.Guarantee{
			Grade: store.HardExceptSplitBrain,
			Reason: fmt.Sprintf("%s replicas: after a failover the old primary may grant until it notices; "+
				"min-replicas-to-write and min-replicas-max-lag bound how long", replicas),
		}
	}
	return store.Guarantee{Grade: store.Hard}
}

// parseInfo adds the lines "name:value" of an INFO reply to facts.
func parseInfo(text string, facts map[string]string) {
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok {
			facts[name] = value
		}
	}
}
