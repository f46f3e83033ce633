package redis

import (
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

	reply string // empty when lua/step.lua has to be asked
	err   error
}

// isQuick reports whether lua/quick.lua may decide such a command.
func isQuick(p limiter.Params, c limiter.Command) bool {
	return c.Op == limiter.Take && len(p.Rates) == 1 && !p.Rates[0].Monthly && p.Fairness.Default == 0
}

// batchOf returns the keys and arguments of lua/batch.lua.
func batchOf(asks []*ask, ends string) (keys []string, args []any) {
	var places [partitions]byte // of guards, from 1
	guards := make([]string, 0, len(asks))
	keys, args = make([]string, 0, 2*len(asks)), make([]any, 0, 1+2*len(asks))
	at := make([]byte, len(asks))
	args = append(args, at)
	for i, a := range asks {
		if places[a.partition] == 0 {
			guards = append(guards, guardKeys[a.partition])
			places[a.partition] = byte(len(guards))
		}
		at[i] = places[a.partition]
		keys = append(keys, a.counter)
		args = append(args, a.head, a.command)
	}
	return append(append(keys, guards...), ends), args
}

const (
	replyBytes = 93  // REPLY_BYTES of lua/quick.lua
	undecided  = 255 // the first byte of UNDECIDED
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
