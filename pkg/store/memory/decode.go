package memory

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// Bounds of what Decode accepts, so that no input makes it use memory out of
// proportion to a real ledger.
const (
	maxDecoded = 256 << 20 // bytes of the stream
	maxGaps    = 1 << 12
	maxOwners  = 1 << 20
	maxString  = 1 << 10
	maxEntries = 1 << 11 // of a list in a state
)

// Decode reads what Export wrote. Anything else is an error, and the reader has
// to start without a ledger.
func Decode(data []byte) (*Ledger, error) {
	if len(data) == 0 {
		return nil, errors.New("the ledger is empty")
	}
	if data[0] != version {
		return nil, fmt.Errorf("the ledger has version %d, this build reads %d", data[0], version)
	}
	stream, err := gzip.NewReader(bytes.NewReader(data[1:]))
	if err != nil {
		return nil, fmt.Errorf("the ledger is damaged: %w", err)
	}
	d := decoder{r: bufio.NewReader(io.LimitReader(stream, maxDecoded))}
	l := d.ledger()
	d.end()
	if d.err != nil {
		return nil, fmt.Errorf("the ledger is damaged: %w", d.err)
	}
	return l, nil
}

// A decoder reads from r until the first error, and from then on returns zeros.
type decoder struct {
	r   *bufio.Reader
	err error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// integer reads a number between low and high.
func (d *decoder) integer(what string, low, high int64) int64 {
	if d.err != nil {
		return 0
	}
	v, err := binary.ReadUvarint(d.r)
	if err != nil {
		d.fail("%s: %w", what, err)
		return 0
	}
	if v > math.MaxInt64 || int64(v) < low || int64(v) > high {
		d.fail("%s is %d, outside %d to %d", what, v, low, high)
		return 0
	}
	return int64(v)
}

func (d *decoder) instant(what string) limiter.Instant {
	return limiter.Instant(d.integer(what, 0, int64(limiter.MaxInstant)))
}

func (d *decoder) text(what string) string {
	b := make([]byte, d.integer("length of "+what, 0, maxString))
	if _, err := io.ReadFull(d.r, b); err != nil {
		d.fail("%s: %w", what, err)
	}
	return string(b)
}

func (d *decoder) ledger() *Ledger {
	l := &Ledger{sealed: d.instant("seal")}
	l.memory.Since = d.instant("start of the memory")
	for range d.integer("number of gaps", 0, maxGaps) {
		l.memory.Gaps = append(l.memory.Gaps, limiter.Gap{From: d.instant("gap"), To: d.instant("gap")})
	}
	for range d.integer("number of forgotten policies", 0, maxOwners) {
		if d.err != nil {
			break
		}
		l.forgotten = append(l.forgotten, d.forgotten())
	}
	var previous store.Key
	for range d.integer("number of counters", 0, maxDecoded) {
		c := &counter{key: d.key(previous), State: d.state()}
		if d.err != nil {
			break
		}
		if len(l.counters) > 0 && compareKeys(previous, c.key) >= 0 {
			d.fail("counters %s and %s are out of order", previous, c.key)
			break
		}
		l.counters = append(l.counters, c)
		previous = c.key
	}
	return l
}

func (d *decoder) key(previous store.Key) store.Key {
	parts := keyParts(&previous)
	for _, part := range parts[d.integer("number of equal key parts", 0, hashPart):hashPart] {
		*part = d.text("key")
	}
	previous.Hash = d.hash()
	return previous
}

func (d *decoder) hash() string {
	if d.integer("kind of hash", 0, 1) == 1 {
		return d.text("hash")
	}
	var packed [hashBytes]byte
	if _, err := io.ReadFull(d.r, packed[:]); err != nil {
		d.fail("hash: %w", err)
	}
	return hex.EncodeToString(packed[:])
}

func (d *decoder) forgotten() Forgotten {
	return Forgotten{
		Cluster: d.text("cluster"), Namespace: d.text("namespace"), Policy: d.text("policy"),
		Since: d.instant("since"), Keys: int(d.integer("keys", 0, maxDecoded)),
	}
}

func (d *decoder) state() limiter.State {
	s := limiter.State{
		Generation: d.integer("generation", 0, limiter.MaxExact),
		Algorithm:  limiter.Algorithm(d.integer("algorithm", 0, math.MaxUint8)),
		Expires:    d.instant("expiry"),
		Began:      d.instant("beginning"),
		Pulse:      d.integer("pulse", 0, limiter.MaxExact),
		Asked:      d.integer("asked", 0, limiter.MaxExact),
		Before:     d.integer("before", 0, limiter.MaxExact),
	}
	for range d.integer("number of tenants", 0, maxEntries) {
		s.Tenants = append(s.Tenants, limiter.TenantUse{Tenant: d.text("tenant"), Used: d.integer("use", 0, limiter.MaxExact)})
	}
	s.N = int(d.integer("number of meters", 1, limiter.MaxRates))
	for i := range s.Slice() {
		s.Meters[i] = d.meter()
	}
	if err := s.Validate(); d.err == nil && err != nil {
		d.fail("state: %w", err)
	}
	return s
}

func (d *decoder) meter() limiter.Meter {
	m := limiter.Meter{
		Rate:  d.rate(),
		Index: d.integer("index", 0, limiter.MaxExact),
		Used:  d.integer("used", 0, limiter.MaxExact),
	}
	for range d.integer("number of entries", 0, maxEntries) {
		m.Log = append(m.Log, limiter.Entry{At: d.instant("entry"), Count: d.integer("count", 1, limiter.MaxExact)})
	}
	return m
}

func (d *decoder) rate() limiter.Rate {
	return limiter.Rate{
		Limit:   d.integer("limit", 1, limiter.MaxLimit),
		Window:  limiter.Micros(d.integer("window", 0, int64(limiter.MaxWindow))),
		Burst:   d.integer("burst", 0, limiter.MaxLimit),
		Offset:  limiter.Micros(d.integer("offset", 0, 2*int64(limiter.MaxOffset))) - limiter.MaxOffset,
		Monthly: d.integer("monthly", 0, 1) == 1,
	}
}

// end requires that nothing follows; reading to the end is also what makes gzip
// check its sum.
func (d *decoder) end() {
	if d.err != nil {
		return
	}
	if _, err := d.r.ReadByte(); err == nil {
		d.fail("more bytes follow the last counter")
	} else if err != io.EOF {
		d.err = err
	}
}
