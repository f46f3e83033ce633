package keyed

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/monotonic"
)

// ErrClosed is the cause of every refusal after Close.
var ErrClosed = errors.New("the region is closed")

// A Region uses one member's part of one budget with a key in one process. Its methods may
// be called concurrently. It has to be closed.
type Region struct {
	coordinator Coordinator
	slices      Slices // nil for none
	clock       *monotonic.Clock
	began       int64 // by it

	ctx    context.Context //nolint:containedctx // of messages, which belong to no request
	cancel context.CancelFunc
	work   sync.WaitGroup // messages under way

	mu      sync.Mutex // guards the rest
	config  Config
	era     int               // how often the length of windows has changed
	values  map[string]*value // by hash
	queue   []*value          // that are to be in the next message
	flights int               // messages under way
	link    link
	closed  bool
	counts  counts
}

// A value is what the region knows of one value of the key.
type value struct {
	hash    string
	purse   keys.Purse
	need    need
	waiting int  // requests, also for a message that is under way
	queued  bool // it is in the queue
	flying  bool // it is in a message that is under way
	use     keys.Use
	spare   bool  // it came when there was no room, so its slice may be used already
	claimed int64 // units in hand that requests are about to take which waited for the last message
	later   int64 // instant before which it is in vain to ask, because the coordinator had no time
	// expected is closed when units are answered for that no request waited for when they were asked
	// for; nil when there are none such.
	expected chan struct{}
}

// A need is what requests wait for that the next message may bring.
type need struct {
	least, want int64         // the smallest of the one, the sum of the other; 0 for nobody
	done        chan struct{} // closed when it was answered; nil for nobody
}

// New returns a region that asks c for units; s is nil when it has no slices. The
// configuration has to be valid.
func New(cfg Config, c Coordinator, s Slices) *Region {
	cfg = cfg.normalize()
	r := &Region{coordinator: c, slices: s, clock: cfg.Clock, began: cfg.Clock.Now(), config: cfg, values: map[string]*value{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.link.since = time.Now()
	return r
}

// instant returns what the own clock reads, above 0.
func (r *Region) instant() int64 { return r.clock.Now() - r.began + 1 }

// Reconfigure goes on under another valid configuration of the same budget and member. With
// windows of another length it begins again: what is in hand is forfeited.
func (r *Region) Reconfigure(cfg Config) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cfg.ID, cfg.Member, cfg.Clock = r.config.ID, r.config.Member, r.clock
	cfg = cfg.normalize()
	again := cfg.Params.Window != r.config.Params.Window
	r.config = cfg
	if !again {
		return
	}
	r.era++
	r.link.refused, r.link.crowd = refusal{}, keys.Crowd{}
	for _, v := range r.values {
		v.purse, v.use, v.later = keys.Purse{}, keys.Use{}, 0
	}
}

// Close refuses requests from now on, and ends the messages under way. Units in hand
// are forfeited. Close once.
func (r *Region) Close() {
	r.mu.Lock()
	r.closed = true
	for _, v := range r.queue {
		v.queued = false
		v.need.settle()
	}
	r.queue = nil
	r.mu.Unlock()
	r.cancel()
	r.work.Wait()
}

// settle has those that wait look again.
func (n *need) settle() {
	if n.done != nil {
		close(n.done)
	}
	*n = need{}
}

// value returns what is known of a value, which is new when nothing is.
func (r *Region) value(hash string, now int64) *value {
	v := r.values[hash]
	if v == nil {
		r.sweep(now)
		v = &value{hash: hash, spare: len(r.values) >= r.config.Keys}
		r.values[hash] = v
	}
	return v
}

// sweepStep is how many values are looked at when one is added: more than one, so that
// dropping catches up with any rate of new ones.
const sweepStep = 4

// sweep drops values with nothing in hand among a few. When there are too many it also drops
// one with units, which are forfeited, unless somebody waits for each of the few. It keeps those
// whose slice is used in a window that may be open.
func (r *Region) sweep(now int64) {
	index, _, _ := r.slice(now)
	looked := 0
	for hash, v := range r.values {
		if looked++; looked > sweepStep {
			return
		}
		full := len(r.values) >= r.config.Keys
		if v.waiting == 0 && !v.flying && !v.queued && (full || !v.purse.Open(now)) && (v.use.Index == 0 || v.use.Index < index) {
			delete(r.values, hash)
		}
	}
}

// slice returns what may be handed on of each value without asking, and until when.
func (r *Region) slice(now int64) (index, units, until int64) {
	if r.slices == nil {
		return 0, 0, 0
	}
	index, units, until = r.slices.Slice()
	if until -= r.began - 1; index == 0 || now >= until {
		return 0, 0, 0
	}
	return index, units, until
}
