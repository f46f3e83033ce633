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
	"slices"
	"strings"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// The encoding is one version byte and a gzip stream, whose checksum guards it.
// The stream holds, as unsigned varints and strings after their length:
//
//	sealed, since, number of gaps, each gap's from and to,
//	number of policies that are forgotten, and each one's names, since and keys,
//	number of counters, and for each counter
//	  the five parts of its key, those equal to the previous key's left out by
//	  a leading count of equal parts; and its limiter.State, field by field,
//	  tenants, meters and the entries of their logs after their number.
//
// A hash, which nothing makes smaller, is 16 bytes after a zero, or a string after
// a one when it is not hexadecimal.
const version = 3

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

// sizes are numbers of bytes of a stream.
type sizes struct {
	all int
	of  map[owner]int
}

func (l *Ledger) encode() ([]byte, sizes, error) {
	var out bytes.Buffer
	out.WriteByte(version)
	// Faster is better than smaller: nobody is served meanwhile.
	stream, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, sizes{}, err
	}
	e := encoder{w: bufio.NewWriterSize(stream, 1<<16)}
	of := e.ledger(l)
	if err := errors.Join(e.w.Flush(), stream.Close()); err != nil {
		return nil, sizes{}, err
	}
	return out.Bytes(), sizes{all: e.written, of: of}, nil
}

// hashPart is the last of the parts of a key: two of one scope differ in it.
const (
	hashPart  = 4
	hashBytes = 16
)

// keyParts are a key's strings from the one that changes least.
func keyParts(k *store.Key) [5]*string {
	return [5]*string{&k.Scope.Cluster, &k.Scope.Namespace, &k.Scope.Policy, &k.Scope.Limit, &k.Hash}
}

// An encoder writes to w, which keeps the first error until Flush.
type encoder struct {
	w       *bufio.Writer
	scratch []byte
	written int // bytes
}

func (e *encoder) integer(v int64) {
	e.scratch = binary.AppendUvarint(e.scratch[:0], uint64(v))
	e.w.Write(e.scratch)
	e.written += len(e.scratch)
}

func (e *encoder) integers(list ...int64) {
	for _, v := range list {
		e.integer(v)
	}
}

func (e *encoder) text(s string) {
	e.integer(int64(len(s)))
	e.w.WriteString(s)
	e.written += len(s)
}

// ledger writes l and returns how many bytes each policy took.
func (e *encoder) ledger(l *Ledger) map[owner]int {
	e.integers(int64(l.sealed), int64(l.memory.Since), int64(len(l.memory.Gaps)))
	for _, g := range l.memory.Gaps {
		e.integers(int64(g.From), int64(g.To))
	}
	e.integer(int64(len(l.forgotten)))
	for _, f := range l.forgotten {
		e.text(f.Cluster)
		e.text(f.Namespace)
		e.text(f.Policy)
		e.integers(int64(f.Since), int64(f.Keys))
	}
	e.integer(int64(len(l.counters)))
	of := map[owner]int{}
	var previous store.Key
	before := e.written
	for i, c := range l.counters {
		if i > 0 && c.key.Scope != previous.Scope { // those of a policy are next to each other
			of[ownerOf(previous.Scope)] += e.written - before
			before = e.written
		}
		e.key(previous, c.key)
		e.state(&c.State)
		previous = c.key
	}
	if len(l.counters) > 0 {
		of[ownerOf(previous.Scope)] += e.written - before
	}
	return of
}

func (e *encoder) key(previous, k store.Key) {
	before, parts := keyParts(&previous), keyParts(&k)
	same := 0
	for same < hashPart && *before[same] == *parts[same] {
		same++
	}
	e.integer(int64(same))
	for _, part := range parts[same:hashPart] {
		e.text(*part)
	}
	e.hash(k.Hash)
}

func (e *encoder) hash(h string) {
	packed, ok := pack(h)
	if !ok {
		e.integer(1)
		e.text(h)
		return
	}
	e.integer(0)
	e.w.Write(packed)
	e.written += len(packed)
}

// pack returns the bytes of a hash as store.HashValue makes it.
func pack(h string) ([]byte, bool) {
	if len(h) != 2*hashBytes || strings.ToLower(h) != h {
		return nil, false
	}
	packed, err := hex.DecodeString(h)
	return packed, err == nil
}

func (e *encoder) state(s *limiter.State) {
	e.integers(s.Generation, int64(s.Algorithm), int64(s.Expires), int64(s.Began), s.Pulse, s.Asked, s.Before)
	// What is Lately has no place here: such a tenant is idle until it asks again.
	asked := slices.DeleteFunc(slices.Clone(s.Tenants), func(t limiter.TenantUse) bool { return t.Used == limiter.Lately })
	e.integer(int64(len(asked)))
	for _, t := range asked {
		e.text(t.Tenant)
		e.integer(t.Used)
	}
	e.integer(int64(s.N))
	for _, m := range s.Slice() {
		e.rate(m.Rate)
		e.integers(m.Index, m.Used, int64(len(m.Log)))
		for _, entry := range m.Log {
			e.integers(int64(entry.At), entry.Count)
		}
	}
}

func (e *encoder) rate(r limiter.Rate) {
	e.integers(r.Limit, int64(r.Window), r.Burst, int64(r.Offset+limiter.MaxOffset))
	monthly := int64(0)
	if r.Monthly {
		monthly = 1
	}
	e.integer(monthly)
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
