package main

import (
	"fmt"

	"github.com/weir-dev/weir/internal/storeprobe"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// openStore opens a store that policies name.
func openStore(of policy.Store, _ map[string][]byte) (storeprobe.Server, error) {
	if of.Type != policy.RedisStore {
		return nil, fmt.Errorf("store type %q is not known to this version of the controller", of.Type)
	}
	return redis.Dial(of.Address), nil
}
