package redis

import (
	"bytes"
	"encoding/binary"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/pkg/limiter"
)

// An ask is a command that lua/batch.lua may decide, with others of other counters.
type ask struct {
	partition uint32
	counter   string // its key
	head      []byte
	command   []byte
	floor     limiter.Instant // the caller's
	reached   limiter.Instant // what the server's clock is known to have reached; once it is sent, the floor

	reply string // empty when lua/step.lua has to be asked
	err   error
}

// isQuick reports whether lua/quick.lua may decide such a command.
func isQuick(p limiter.Params, c limiter.Command) bool {
	return c.Op == limiter.Take && len(p.Rates) == 1 && !p.Rates[0].Monthly && p.Fairness.Default == 0
}

// batchOf returns the keys and arguments of lua/batch.lua. It brings the commands up to the newest
// instant that one of them says the server's clock has reached: then most are the same, and
// travel once.
func batchOf(asks []*ask, ends string) (keys []string, args []any) {
	var places [partitions]byte // of guards, from 1
	guards := make([]string, 0, len(asks))
	keys, args = make([]string, 0, 2*len(asks)+1), make([]any, 2, 4)
	at, commands := make([]byte, len(asks)), make([]byte, len(asks))
	args[0], args[1] = at, commands
	var reached limiter.Instant
	for _, a := range asks {
		reached = max(reached, a.reached)
	}
	for i, a := range asks {
		if places[a.partition] == 0 {
			guards = append(guards, guardKeys[a.partition])
			places[a.partition] = byte(len(guards))
		}
		at[i] = places[a.partition]
		keys = append(keys, a.counter)
		a.reach(reached)
		args, commands[i] = a.among(args)
	}
	return append(append(keys, guards...), ends), args
}

// among returns args with the head and the command among them, and their number there, from 1.
func (a *ask) among(args []any) (with []any, number byte) {
	const before = 2
	for at := before; at < len(args); at += 2 {
		head, _ := args[at].([]byte)
		command, _ := args[at+1].([]byte)
		if bytes.Equal(a.command, command) && bytes.Equal(a.head, head) {
			return args, byte(at / 2)
		}
	}
	return append(args, a.head, a.command), byte(len(args) / 2)
}

// reach puts the floor into the command.
func (a *ask) reach(reached limiter.Instant) {
	a.reached = max(a.floor, reached)
	binary.BigEndian.PutUint64(a.command[floorAt:], uint64(min(int64(a.reached), limiter.MaxExact)))
}

const (
	replyBytes = 93  // REPLY_BYTES of lua/quick.lua
	undecided  = 255 // the first byte of UNDECIDED
	floorAt    = 68  // of a command
)

// answer hands out what lua/batch.lua replied.
func answer(asks []*ask, batch *goredis.Cmd) {
	text, err := batch.Text()
	if err == nil && len(text) != replyBytes*len(asks) {
		err = fmt.Errorf("the script answered %d bytes to %d commands", len(text), len(asks))
	}
	for i, a := range asks {
		if a.err = err; err != nil {
			continue
		}
		if reply := text[i*replyBytes : (i+1)*replyBytes]; reply[0] != undecided {
			a.reply = reply
		}
	}
}
