package redis

import (
	_ "embed"

	goredis "github.com/redis/go-redis/v9"
)

//go:embed testdata/shifted.lua
var shiftedServerLua string

// NewShifted returns a store by a clock that is ahead of the server's by the
// microseconds in the key "shift", and knows of no time that passes between replies.
func NewShifted(client goredis.UniversalClient, name string) *Store {
	return newStore(client, name, shiftedServerLua, stopped)
}

// stopped is a clock that stands still.
func stopped() int64 { return 0 }
