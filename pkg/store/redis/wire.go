package redis

import (
	"encoding/binary"
	"fmt"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// layout is the version of a counter's layout, VERSION of lua/wire.lua.
const layout = 1

// encode returns the arguments of the script, as lua/wire.lua lists them.
func encode(p limiter.Params, c limiter.Command, known store.Recollection) []any {
	args := []any{encodeHead(p), encodeCommand(p, c, known)}
	fair := p.Fairness.Default > 0
	if c.Op == limiter.Return || fair {
		args = append(args, encodeWindows(c.Windows))
	}
	if fair {
		args = append(args, c.Tenant, encodeWeights(p.Fairness.Weights), flag(p.Fairness.Reserve))
	}
	return args
}

func encodeHead(p limiter.Params) []byte {
	b := make([]byte, 0, 11+33*len(p.Rates))
	b = append(b, layout, byte(p.Algorithm))
	b = appendInts(b, p.Generation)
	b = append(b, byte(len(p.Rates)))
	for _, r := range p.Rates {
		b = appendRate(b, r)
	}
	return b
}

func encodeCommand(p limiter.Params, c limiter.Command, known store.Recollection) []byte {
	b := make([]byte, 0, 4+8*(12+len(p.Retention.Born)))
	b = append(b, byte(c.Op), flag(c.First), flag(p.Any), retention(p.Retention))
	b = appendInts(b, min(c.Min, limiter.MaxExact), min(c.Want, limiter.MaxExact), int64(c.At),
		p.Buckets, int64(p.MaxDelay), int64(p.Lifetime), int64(p.Since), p.Fairness.Default, min(int64(c.Floor), limiter.MaxExact), int64(known.Since), int64(known.Doubtful), int64(known.Past()))
	if !known.Vouches(known.Since) {
		return b
	}
	for _, m := range p.Retention.Born {
		b = binary.BigEndian.AppendUint64(b, uint64(m))
	}
	return b
}

// retention says what follows from a loss, as lua/wire.lua numbers it.
func retention(r limiter.Retention) byte {
	switch {
	case r.Resume:
		return 1
	case r.Durable:
		return 2
	default:
		return 0
	}
}

// encodeWeights makes a MessagePack map of tenants to weights.
func encodeWeights(weights []limiter.Weight) []byte {
	b := []byte{0xde} // map 16
	b = binary.BigEndian.AppendUint16(b, uint16(len(weights)))
	for _, w := range weights {
		b = append(b, 0xdb) // str 32
		b = binary.BigEndian.AppendUint32(b, uint32(len(w.Tenant)))
		b = append(b, w.Tenant...)
		b = append(b, 0xcd) // uint 16
		b = binary.BigEndian.AppendUint16(b, uint16(w.Weight))
	}
	return b
}

func encodeWindows(w limiter.Windows) []byte {
	b := make([]byte, 0, w.N*(33+8))
	for _, v := range w.Slice() {
		b = appendInts(appendRate(b, v.Rate), v.Index)
	}
	return b
}

func appendRate(b []byte, r limiter.Rate) []byte {
	return append(appendInts(b, r.Limit, int64(r.Window), r.Burst, int64(r.Offset)), flag(r.Monthly))
}

func appendInts(b []byte, list ...int64) []byte {
	for _, v := range list {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	return b
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// marks are what the script says beside its result.
type marks byte

const (
	began marks = 1 << iota // the instance's memory
	made                    // the counter
)

// decode reads the script's reply to a command by p, and the start of the memory that
// the limit is in.
func decode(reply any, p limiter.Params) (res limiter.Result, begun limiter.Instant, m marks, err error) {
	text, ok := reply.(string)
	if !ok {
		return res, 0, 0, fmt.Errorf("the script answered %T, not a string", reply)
	}
	r := reader{text: text}
	m = marks(r.byte())
	res.Reason, res.Algorithm = limiter.Reason(r.byte()), limiter.Algorithm(r.byte())
	res.Windows.N = min(int(r.byte()), limiter.MaxRates)
	named := r.byte() == 1
	res.Granted, res.Remaining, res.Limit = r.int(), r.int(), r.int()
	res.ResetAfter, res.ExpiresIn, res.RetryAfter = r.micros(), r.micros(), r.micros()
	res.Delay, res.Now, begun = r.micros(), limiter.Instant(r.int()), limiter.Instant(r.int())
	for i := range res.Windows.Slice() {
		w := &res.Windows.Open[i]
		switch {
		case named:
			w.Rate = r.rate()
		case i < len(p.Rates):
			w.Rate = p.Rates[i]
		}
		w.Index, w.Granted = r.int(), r.int()
	}
	if r.short || r.text != "" {
		return limiter.Result{}, 0, 0, fmt.Errorf("the script answered %d bytes, which is not a result", len(text))
	}
	return res, begun, m, nil
}

// A reader takes packed integers off a text.
type reader struct {
	text  string
	short bool // the text ended too early
}

func (r *reader) take(n int) string {
	if len(r.text) < n {
		r.text, r.short = "", true
		return string(make([]byte, n))
	}
	head := r.text[:n]
	r.text = r.text[n:]
	return head
}

func (r *reader) byte() byte { return r.take(1)[0] }

func (r *reader) int() int64 {
	return int64(binary.BigEndian.Uint64([]byte(r.take(8))))
}

func (r *reader) micros() limiter.Micros { return limiter.Micros(r.int()) }

func (r *reader) rate() limiter.Rate {
	return limiter.Rate{
		Limit: r.int(), Window: r.micros(), Burst: r.int(), Offset: r.micros(), Monthly: r.byte() == 1,
	}
}
