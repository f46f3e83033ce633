package storeprobe

import (
	"slices"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// maxUnbroken bounds how many memories of a server are remembered. The oldest go first.
const maxUnbroken = 32

// A recollection is when a server was seen in one memory of its durable counters, and in
// another.
type recollection struct {
	lossless bool
	memories []limiter.MemoryID
	unbroken []audit.Unbroken
}

// see notes which memories an answer named, to what was asked at sent. None stand for too
// many, and a server that is configured otherwise may name them by something else: then
// nothing is known of the time before.
func (r *recollection) see(facts store.Facts, sent, received time.Time) {
	memories := facts.Durable.Memories
	if len(memories) == 0 || facts.Lossless != r.lossless {
		*r = recollection{lossless: facts.Lossless}
	}
	if len(memories) == 0 {
		return
	}
	last := len(r.unbroken) - 1
	if last >= 0 && slices.Equal(memories, r.memories) {
		if sent.After(r.unbroken[last].To) {
			r.unbroken[last].To = sent
		}
		return
	}
	if last >= 0 && sent.Before(r.unbroken[last].To) {
		return // overtaken on the way
	}
	r.memories = slices.Clone(memories)
	r.unbroken = append(r.unbroken, audit.Unbroken{From: received, To: sent})
	if len(r.unbroken) > maxUnbroken {
		r.unbroken = slices.Clone(r.unbroken[1:])
	}
}

// Remembered returns the spans in which a store certainly lost nothing that its durable
// counters hold, from the first to the last, as far as it said which memory it was in. It is
// empty when nothing is known.
func (p *Prober) Remembered(of policy.Store) []audit.Unbroken {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f, ok := p.floors[of.Server()]; ok {
		return slices.Clone(f.durable.unbroken)
	}
	return nil
}
