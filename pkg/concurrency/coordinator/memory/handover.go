package memory

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// The encoding is one version byte and a gzip stream, whose checksum guards it, of
// a ledger in JSON.
const version = 1

// maxDecoded bounds the stream, so that no input uses memory out of proportion.
const maxDecoded = 256 << 20

// A ledger is what one coordinator hands over to the next: entries, which are read one by
// one.
type ledger[E any] struct {
	// Age is how long ago the memory began. Pools that are not listed have no share
	// that it granted, but may have one of a memory before.
	Age    limiter.Micros `json:"age"`
	Newest int64          `json:"newest"` // generation of the pools that were forgotten
	Pools  []E            `json:"pools"`  // by key
}

type entry struct {
	Key    pool.Key    `json:"key"`
	Memory pool.Memory `json:"memory"`
}

// Export seals the coordinator and returns what Import reads. It is an error when
// that has more than maxBytes bytes: the next coordinator then begins as after a loss.
func (c *Coordinator) Export(maxBytes int) ([]byte, error) {
	c.Seal()
	data, err := c.ledger().encode()
	if err != nil {
		return nil, fmt.Errorf("encode the pools: %w", err)
	}
	if len(data) > maxBytes {
		return nil, fmt.Errorf("the pools have %d bytes, more than %d", len(data), maxBytes)
	}
	return data, nil
}

func (c *Coordinator) ledger() *ledger[entry] {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock()
	l := &ledger[entry]{Age: min(max(0, now.Sub(c.began)), pool.MaxTTL), Newest: c.newest}
	for key, d := range c.pools {
		l.Pools = append(l.Pools, entry{key, d.Memory()})
	}
	slices.SortFunc(l.Pools, func(a, b entry) int { return cmp.Compare(a.Key.String(), b.Key.String()) })
	return l
}

// Import goes on with what another coordinator exported, which no third one does. It
// is called before the first Apply.
//
// The other may be of another version. A pool with an unknown field or an impossible
// value is not taken over: what the field says may be units that are in use, and without
// it the pool would grant them twice. It begins as after a loss: for as long as its
// shares may last, holders only keep what they use. So does every pool that is not
// listed, since the next to import could not distinguish the two. The pools that are
// understood go on. The error names the others; when nothing is understood, every pool
// begins as after a loss.
func (c *Coordinator) Import(data []byte) error {
	l, err := decode(data)
	if err != nil {
		return fmt.Errorf("the pools of the coordinator before: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock()
	pools := make(map[pool.Key]*divided, len(l.Pools))
	var lost []error
	for i, raw := range l.Pools {
		key, s, err := c.restore(raw, now)
		if err != nil {
			lost = append(lost, fmt.Errorf("pool %d, %s: %w", i, key, err))
			continue
		}
		pools[key] = &divided{State: s, asked: now}
	}
	c.began, c.newest, c.pools = now.Add(-l.Age), l.Newest, pools
	if len(lost) > 0 {
		c.began = now
	}
	return errors.Join(lost...)
}

// restore returns the pool of an entry. The key is empty when it cannot be read.
func (c *Coordinator) restore(raw json.RawMessage, now limiter.Instant) (pool.Key, *pool.State, error) {
	var e entry
	if err := strictly(raw, &e); err != nil {
		return e.Key, nil, err
	}
	if e.Memory.Term > c.term {
		return e.Key, nil, fmt.Errorf("its term %d is above this coordinator's, %d", e.Memory.Term, c.term)
	}
	s, err := pool.Restore(e.Memory, now)
	return e.Key, s, err
}

func (l *ledger[E]) encode() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte(version)
	stream := gzip.NewWriter(&out)
	if err := errors.Join(json.NewEncoder(stream).Encode(l), stream.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func decode(data []byte) (*ledger[json.RawMessage], error) {
	if len(data) == 0 || data[0] != version {
		return nil, fmt.Errorf("not version %d of the encoding", version)
	}
	stream, err := gzip.NewReader(bytes.NewReader(data[1:]))
	if err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(stream, maxDecoded))
	if err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	var l ledger[json.RawMessage]
	if err := strictly(text, &l); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	if l.Age < 0 || l.Age > pool.MaxTTL || l.Newest < 0 {
		return nil, fmt.Errorf("damaged: age %d, newest generation %d", l.Age, l.Newest)
	}
	return &l, nil
}

// strictly decodes one value without unknown fields.
func strictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
