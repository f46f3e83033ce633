package births

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Shards is over how many objects births are spread: each has room for 4,000.
const Shards = 8

// A Store keeps births, in shards, where they survive the process.
type Store interface {
	// Load returns what a shard holds and its version, "" when there is none.
	Load(ctx context.Context, shard int) (data []byte, version string, err error)
	// Save replaces a shard that still has that version, or makes it when that is "", and
	// returns the new version.
	Save(ctx context.Context, shard int, data []byte, version string) (string, error)
}

// A birth is that of one limit on one store.
type birth struct {
	// Memories are those of its retention that were uninterrupted then; none when that
	// was not known.
	Memories []limiter.MemoryID `json:"memories,omitempty"`
	// Durable is its retention, and Since when an edit changed that, on the store's clock:
	// what was granted before may be kept elsewhere, or be forgotten. 0 when none did.
	Durable bool            `json:"durable,omitempty"`
	Since   limiter.Instant `json:"since,omitempty"`
	Longest limiter.Micros  `json:"longest"` // window
	// Gone is when the limit was first found to be gone, 0 while it is there.
	Gone limiter.Instant `json:"gone,omitempty"`
}

// A shard is what one object holds.
type shard struct {
	// Began is when the births were first written down, 0 when nobody had led before: a
	// limit may have been in force before that.
	Began  limiter.Instant   `json:"began,omitempty"`
	Limits map[string]*birth `json:"limits"`

	version string
}

func shardOf(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return int(h.Sum32() % Shards)
}

// load reads all shards, unless they are known, and makes those that do not exist. The
// lock is held.
func (b *Births) load(ctx context.Context) error {
	if b.loaded {
		return nil
	}
	for i := range b.shards {
		data, version, err := b.Store.Load(ctx, i)
		if err != nil {
			return err
		}
		read := shard{version: version}
		if version != "" {
			if err := json.Unmarshal(data, &read); err != nil {
				return fmt.Errorf("shard %d: %w", i, err)
			}
		}
		if read.Limits == nil {
			read.Limits = map[string]*birth{}
		}
		b.shards[i] = read
		if version == "" {
			if !b.First {
				b.shards[i].Began = b.Clock()
			}
			if err := b.save(ctx, i); err != nil {
				return err
			}
		}
	}
	b.loaded = true
	return nil
}

func (b *Births) save(ctx context.Context, i int) error {
	s := &b.shards[i]
	data, err := json.Marshal(s)
	if err == nil {
		s.version, err = b.Store.Save(ctx, i, data, s.version)
	}
	return err
}

// sweep notes which limits are gone, drops those that no window looks back on, and reports
// whether anything changed.
func (s *shard) sweep(exists func(name string) bool, now limiter.Instant) (changed bool) {
	for name, entry := range s.Limits {
		is := exists(name)
		switch {
		case is && entry.Gone != 0:
			entry.Gone, changed = 0, true
		case !is && entry.Gone == 0:
			entry.Gone, changed = now, true
		case !is && now >= entry.Gone.Add(entry.Longest+limiter.Micros(2*SweepInterval.Microseconds())):
			delete(s.Limits, name)
			changed = true
		}
	}
	return changed
}
