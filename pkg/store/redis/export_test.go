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
	return newStore(client, name, preamble(shiftedServerLua, false), stopped)
}

//go:embed testdata/service.lua
var serviceLua string

// OpenShiftedREST is NewShifted for a server that is reached over HTTP.
func OpenShiftedREST(o RESTOptions) (*Store, error) { return openREST(o, shiftedServerLua, stopped) }

// OpenService returns a store on a service that shows no more of its instance than a leader,
// the value of the key "leader".
func OpenService(o RESTOptions) (*Store, error) { return openREST(o, serviceLua, sinceStart()) }

// stopped is a clock that stands still.
func stopped() int64 { return 0 }
