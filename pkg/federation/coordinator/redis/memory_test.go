package redis

import (
	"context"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// memoryOf returns the memory that a server has of a budget.
func memoryOf(client *goredis.Client, id string) (ledger.Memory, error) {
	ctx := context.Background()
	keys, err := client.Keys(ctx, "weir:*budget:*").Result()
	for _, key := range keys {
		if len(key) < len(id) || key[len(key)-len(id):] != id {
			continue
		}
		head, err := client.HGet(ctx, key, "memory").Result()
		if err != nil {
			return ledger.Memory{}, err
		}
		var r record
		r.head(&reader{rest: head})
		return r.Memory, nil
	}
	return ledger.Memory{}, fmt.Errorf("no budget %s: %w", id, err)
}
