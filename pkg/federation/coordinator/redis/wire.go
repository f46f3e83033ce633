package redis

import (
	"encoding/binary"
	"fmt"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// encodeParams returns the parameters as lua/wire.lua reads them.
func encodeParams(p *ledger.Params) []byte {
	b := appendInts(make([]byte, 0, 19+64*len(p.Members)), p.Limit, int64(p.Window))
	b = append(b, byte(p.Strategy), flag(p.Slices), byte(len(p.Members)))
	for i := range p.Members {
		m := &p.Members[i]
		b = appendInts(appendText(b, m.Name), m.Weight, m.Nominal, m.Kept, m.Borrowing)
	}
	return b
}

func encodeCommand(c *ledger.Command) []byte {
	b := append(make([]byte, 0, 2+13*8+25*len(c.Usage)), byte(c.Op))
	b = appendInts(b, c.Seq, c.Epoch.Index, c.Epoch.Term, c.Granted, c.Min, c.Want, c.Demand, c.Weight,
		c.Tenants.Met, c.Tenants.Unmet, c.Slice, c.Born, c.List)
	b = append(b, byte(len(c.Usage)))
	for _, u := range c.Usage {
		b = append(appendInts(b, u.Index, u.Admitted, u.Refused), flag(u.Complete))
	}
	return b
}

func appendInts(b []byte, list ...int64) []byte {
	for _, v := range list {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	return b
}

func appendText(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(text))), text...)
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// decodeGrant reads the reply of lua/step.lua.
func decodeGrant(reply any) (ledger.Grant, error) {
	text, _ := reply.(string)
	r := reader{rest: text}
	g := ledger.Grant{Reason: ledger.Reason(r.byte()), Seq: r.int()}
	g.Epoch = ledger.Epoch{Index: r.int(), Term: r.int()}
	g.Granted, g.Slice, g.NowSlice, g.Limit, g.Remaining = r.int(), r.int(), r.int(), r.int(), r.int()
	g.ExpiresIn, g.RetryAfter, g.Now = limiter.Micros(r.int()), limiter.Micros(r.int()), limiter.Instant(r.int())
	if r.short || len(r.rest) > 0 {
		return ledger.Grant{}, fmt.Errorf("the script answered %T of %d bytes, which is not a grant", reply, len(text))
	}
	return g, nil
}

// A reader reads what the scripts pack. Beyond the end there are zeros.
type reader struct {
	rest  string
	short bool // it was asked for more than there was
}

func (r *reader) take(n int) string {
	if n > len(r.rest) {
		r.short, r.rest = true, ""
		return string(make([]byte, n))
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) byte() byte { return r.take(1)[0] }

func (r *reader) int() int64 { return int64(binary.BigEndian.Uint64([]byte(r.take(8)))) }

func (r *reader) count() int { return int(binary.BigEndian.Uint16([]byte(r.take(2)))) }

func (r *reader) text() string { return r.take(r.count()) }
