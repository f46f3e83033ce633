// Package dial opens stores on the servers of redistest. It is apart from them because the tests of
// the store itself need the servers.
package dial

import (
	"testing"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// Server returns a store on a server that is closed when the test ends.
func Server(t testing.TB, server *redistest.Server) *redis.Store {
	return Open(t, redis.Options{Addresses: []string{server.Addr}})
}

// OverHTTP returns one that reaches the server through a bridge.
func OverHTTP(t testing.TB, server *redistest.Server) *redis.Store {
	b := server.StartBridge()
	return redistest.Opened[*redis.Store](t)(redis.OpenREST(redis.RESTOptions{URL: b.URL, Token: b.Token}))
}

// Open returns a store that is closed when the test ends.
func Open(t testing.TB, o redis.Options) *redis.Store {
	return redistest.Opened[*redis.Store](t)(redis.Open(o))
}
