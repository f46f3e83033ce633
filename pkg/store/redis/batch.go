package redis

import (
	"bytes"
	"encoding/binary"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// An ask is a command that lua/batch.lua may decide, with others of other counters.
type ask struct {
	partition uint32
	counter   string // its key
	head      []byte
	command   []byte
	floor     limiter.Instant // the caller's
	reached   limiter.Instant // what the server's clock is known to have reached; once it is sent, the floor
	since     limiter.Instant // start of the memory that the holder recalls
	past      limiter.Instant // before which that may have granted

	reply string // empty when lua/step.lua has to be asked
	err   error
}

// newAsk returns a command of a counter in a partition.
func newAsk(partition uint32, counter string, p limiter.Params, c limiter.Command, reached limiter.Instant, known store.Recollection) *ask {
	return &ask{
		partition: partition, counter: counter, head: encodeHead(p), command: encodeCommand(p, c, known),
		floor: c.Floor, reached: reached, since: known.Since, past: known.Past(),
	}
}

// isQuick reports whether lua/quick.lua may decide such a command.
func isQuick(p limiter.Params, c limiter.Command) bool {
	return c.Op == limiter.Take && len(p.Rates) == 1 && !p.Rates[0].Monthly && p.Fairness.Default == 0
}

// batchOf returns the keys and arguments of lua/batch.lua. It brings the commands up to the newest
// instant that one of them says the server's clock has reached, and those that recall the same
// memory up to the newest by which that may have granted: then most are the same, and travel once.
func batchOf(asks []*ask, ends string) (keys []string, args []any) {
	var places [partitions]byte // of guards, from 1
	guards := make([]string, 0, len(asks))
	keys, args = make([]string, 0, 2*len(asks)+1), make([]any, 2, 4)
	at, commands := make([]byte, len(asks)), make([]byte, len(asks))
	args[0], args[1] = at, commands
	var reached limiter.Instant
	var known newest
	for _, a := range asks {
		reached = max(reached, a.reached)
		known.note(a)
	}
	for i, a := range asks {
		if places[a.partition] == 0 {
			guards = append(guards, guardKeys[a.partition])
			places[a.partition] = byte(len(guards))
		}
		at[i] = places[a.partition]
		keys = append(keys, a.counter)
		a.reach(reached, known.past(a))
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

// reach puts the floor into the command, and until when the memory that it recalls may have granted.
func (a *ask) reach(reached, past limiter.Instant) {
	a.reached = max(a.floor, reached)
	binary.BigEndian.PutUint64(a.command[floorAt:], uint64(min(int64(a.reached), limiter.MaxExact)))
	binary.BigEndian.PutUint64(a.command[pastAt:], uint64(past))
}

// newest are asks, one for each memory that is recalled: that with the newest past. The partitions
// of one server mostly have memories that began at the same instant, and each was heard of last at
// another one.
type newest []*ask

func (n *newest) note(a *ask) {
	for i, other := range *n {
		if other.since == a.since {
			if a.past > other.past {
				(*n)[i] = a
			}
			return
		}
	}
	*n = append(*n, a)
}

// past returns the newest past of the asks that recall the memory that a does.
func (n newest) past(a *ask) limiter.Instant {
	for _, other := range n {
		if other.since == a.since {
			return other.past
		}
	}
	return a.past
}

const (
	replyBytes = 93  // REPLY_BYTES of lua/quick.lua
	undecided  = 255 // the first byte of UNDECIDED
	floorAt    = 68  // of a command
	pastAt     = 92
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
