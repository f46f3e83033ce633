package redis_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// A counter in the primary that three Sentinels watch. Processes that call this share it.
func ExampleOpen() {
	counters, err := redis.Open(redis.Options{
		Addresses: []string{"sentinel-0:26379", "sentinel-1:26379", "sentinel-2:26379"},
		Sentinel:  "weir",
		User:      "weir", Password: "from a Secret",
		TLS: &tls.Config{MinVersion: tls.VersionTLS13},
	})
	if err != nil {
		fmt.Println(err) // names the option, and the cure
		return
	}
	defer counters.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	key := store.Key{Scope: store.Scope{Namespace: "shop", Policy: "checkout", Limit: "by-tenant"}, Hash: store.HashValue("blue")}
	params := limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: 100, Window: limiter.Second}}}
	result, err := counters.Apply(ctx, key, params, limiter.Command{Op: limiter.Take, Min: 1, Want: 8})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Granted, "granted until", time.Duration(result.ExpiresIn)*time.Microsecond, "from now")
}
