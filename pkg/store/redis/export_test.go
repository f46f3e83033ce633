package redis

import (
	_ "embed"

	goredis "github.com/redis/go-redis/v9"
)

//go:embed testdata/shifted.lua
var shiftedServerLua string

// NewShifted returns a store by a clock that is ahead of the server's by the
// microseconds in the key "shift".
func NewShifted(client goredis.UniversalClient, name string) *Store {
	return newStore(client, name, shiftedServerLua)
}
