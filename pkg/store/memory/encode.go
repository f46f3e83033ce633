package memory

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"errors"
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
	// A tenant that is Lately has no place here: it is idle until it asks again.
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
