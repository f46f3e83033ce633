package redis

import (
	"encoding/binary"
	"fmt"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// encodeParams returns the parameters as lua/wire.lua reads them. Equal ones are equal
// texts.
func encodeParams(p *pool.Params) []byte {
	b := appendInts(make([]byte, 0, 6*8+3), p.Min, p.Max, p.Initial)
	b = append(b, byte(p.Aggregate), byte(p.Allocation), byte(p.Handoff))
	return appendInts(b, int64(p.TTL), int64(p.Quarantine), p.Generation)
}

func encodeCommand(c *pool.Command) []byte {
	b := append(make([]byte, 0, 1+7*8), byte(c.Op))
	return appendInts(b, c.Seq, c.Term, c.Applied, c.Held, c.InFlight, c.Peak, c.Limit)
}

func appendInts(b []byte, list ...int64) []byte {
	for _, v := range list {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// decode reads the script's reply.
func decode(reply any) (pool.Grant, error) {
	var ints [12]int64
	text, _ := reply.(string)
	if len(text) != 8*len(ints) {
		return pool.Grant{}, fmt.Errorf("the script answered %T of %d bytes, which is not a grant", reply, len(text))
	}
	for i := range ints {
		ints[i] = int64(binary.BigEndian.Uint64([]byte(text[8*i:])))
	}
	return pool.Grant{
		Seq: ints[0], Term: ints[1], Generation: ints[2], Share: ints[3], TTL: limiter.Micros(ints[4]),
		Limit: ints[5], Holders: ints[6], Granted: ints[7], InFlight: ints[8],
		Occupied: ints[9], Bound: ints[10], Quarantined: limiter.Micros(ints[11]),
	}, nil
}
