package postgres_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var lease = limiter.Command{Min: 1, Want: 5}

func counterOf(hash string) store.Key {
	return store.Key{Scope: store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}, Hash: hash}
}
