package redis

import (
	"encoding/binary"
	"fmt"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// encode returns the command, without the holder, as lua/wire.lua reads it.
func encode(c *escrow.Command) []byte {
	g := &c.Grant
	b := append(make([]byte, 0, 1+13*8), byte(c.Op))
	return appendInts(b,
		c.Min, c.Want, c.Keep, c.Epoch.Index, c.Slice, int64(c.At), int64(c.ExpiresIn), int64(c.Age),
		g.Seq, g.Epoch.Index, g.Epoch.Term, g.Granted, g.Slice,
	)
}

func appendInts(b []byte, list ...int64) []byte {
	for _, v := range list {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// decode reads the script's reply: the numbers, and the holder.
func decode(reply any) (escrow.Result, error) {
	var ints [13]int64
	text, _ := reply.(string)
	if len(text) < 8*len(ints) {
		return escrow.Result{}, fmt.Errorf("the script answered %T of %d bytes, which is not a result", reply, len(text))
	}
	for i := range ints {
		ints[i] = int64(binary.BigEndian.Uint64([]byte(text[8*i:])))
	}
	return escrow.Result{
		Granted: ints[0], Now: limiter.Instant(ints[1]),
		Epoch: ledger.Epoch{Index: ints[2], Term: ints[3]}, ExpiresIn: limiter.Micros(ints[4]),
		Remaining: ints[5], Taken: ints[6], Asked: ints[7],
		Holder: text[8*len(ints):], Seq: ints[8], Told: ints[9],
		From: ledger.Epoch{Index: ints[10], Term: ints[11]}, Slice: ints[12],
	}, nil
}
