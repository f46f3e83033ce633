package postgres_test

import (
	"context"
	"fmt"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/postgres"
)

// A quota of a month in a database. Its counter outlives restarts of the server.
func ExampleDial() {
	counters, err := postgres.Dial(postgres.Options{Address: "db:5432", Database: "limits", User: "weir", Password: "from a Secret"})
	if err != nil {
		fmt.Println(err) // names the option, and the cure
		return
	}
	defer counters.Close()

	key := store.Key{Scope: store.Scope{Namespace: "shop", Policy: "plans", Limit: "calls"}, Hash: store.HashValue("blue")}
	params := limiter.Params{
		Generation: 1,
		Rates:      []limiter.Rate{{Limit: 100_000, Monthly: true}},
		Retention:  limiter.Retention{Durable: true},
	}
	result, err := counters.Apply(context.Background(), key, params, limiter.Command{Op: limiter.Take, Min: 1, Want: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Remaining, "are left of the month")
}
