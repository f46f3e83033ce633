package redis

import (
	"context"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Settings of the connections that Dial makes.
const (
	// callTimeout bounds a call whose context has no earlier deadline, and how
	// long a cancelled call may linger.
	callTimeout = time.Second
	// bufferBytes holds one command or reply: sidecars keep several connections
	// and little memory.
	bufferBytes = 4 << 10
)

// Dial returns a store on one Redis server, address being host:port or the path
// of a Unix socket. It connects when first used, so an unreachable server is an
// error of Apply. Calls end at their context's deadline, at the latest after a
// second.
//
// Dial silences the client library's own log for the process: whatever it says is
// an error of a call too.
func Dial(address string) *Store {
	silence()
	return New(goredis.NewClient(&goredis.Options{
		Addr:                     address,
		ClientName:               "weir",
		ContextTimeoutEnabled:    true,
		DialTimeout:              callTimeout,
		DialerRetries:            1,
		ReadTimeout:              callTimeout,
		WriteTimeout:             callTimeout,
		PoolTimeout:              callTimeout,
		MaxRetries:               -1,
		ReadBufferSize:           bufferBytes,
		WriteBufferSize:          bufferBytes,
		PipelineReadBufferSize:   bufferBytes,
		PipelineWriteBufferSize:  bufferBytes,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}), Options{Name: address})
}

var silence = sync.OnceFunc(func() { goredis.SetLogger(silentLogger{}) })

type silentLogger struct{}

func (silentLogger) Printf(context.Context, string, ...any) {}
