package pool

import "github.com/weir-dev/weir/pkg/limiter"

// A Memory is all that a State remembers, for one coordinator to hand over to
// another. The instants of the two clocks have nothing to do with each other, so it
// holds none.
type Memory struct {
	Term        int64          `json:"term"`
	Generation  int64          `json:"generation"` // of the newest share
	Params      Params         `json:"params"`
	Limit       int64          `json:"limit"`
	Bound       int64          `json:"bound"`       // Grant.Bound
	Quarantined limiter.Micros `json:"quarantined"` // what is left of the quarantine
	Holders     []Record       `json:"holders"`     // by slot
}

// A Record is what a memory knows of one holder.
type Record struct {
	Holder     string         `json:"holder"`
	Seq        int64          `json:"seq"`        // of its last command
	Generation int64          `json:"generation"` // of Share
	Share      int64          `json:"share"`
	Unacked    int64          `json:"unacked"` // the largest share that was issued and not seen superseded
	Held       int64          `json:"held"`    // as its last command said, as are the next three
	InFlight   int64          `json:"inFlight"`
	Peak       int64          `json:"peak"`
	Limit      int64          `json:"limit"`
	Expires    limiter.Micros `json:"expires"` // from now, at least 1 in a memory that was not read late
}

// Memory returns what s remembers.
func (s *State) Memory() Memory {
	m := Memory{
		Term: s.term, Generation: s.generation, Params: s.params, Limit: s.limit, Bound: s.bound,
		Quarantined: max(0, s.until.Sub(s.now)), Holders: make([]Record, len(s.holders)),
	}
	for i := range s.holders {
		h := &s.holders[i]
		m.Holders[i] = Record{
			Holder: h.name, Seq: h.seq, Generation: h.generation, Share: h.share, Unacked: h.unacked,
			Held: h.held, InFlight: h.inFlight, Peak: h.peak, Limit: int64(h.opinion.limit), Expires: h.expires.Sub(s.now),
		}
	}
	return m
}

// Restore returns a State that goes on with a memory, which nobody else goes on
// with, at the instant now of its own coordinator's clock. Every share lasts as if
// its holder had beaten just now, because how much time passed since m was read is
// not known; but one that may have to end with the quarantine still does. A memory
// that no State can have is an *InvalidError.
func Restore(m Memory, now limiter.Instant) (*State, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	s := New(m.Term)
	s.generation, s.params, s.limit, s.bound = m.Generation, m.Params, m.Limit, m.Bound
	s.now, s.until, s.waited = now, now.Add(m.Quarantined), m.Params.Quarantine
	for i := range m.Holders {
		lasts := max(m.Holders[i].Expires, m.Params.TTL)
		if m.Holders[i].Expires <= m.Quarantined {
			lasts = m.Quarantined
		}
		s.restore(&m.Holders[i], now.Add(lasts))
	}
	return s, nil
}

func (s *State) restore(r *Record, expires limiter.Instant) {
	slot := int32(len(s.holders))
	s.slots[r.Holder] = slot
	s.holders = append(s.holders, holder{
		name: r.Holder, seq: r.Seq, generation: r.Generation, share: r.Share, unacked: r.Unacked,
		held: r.Held, inFlight: r.InFlight, peak: r.Peak, expires: expires,
	})
	s.hungry.grow()
	s.queue.push(s.holders, slot)
	s.opinions.replace(&s.holders[slot].opinion, r.Limit)
	s.count(slot)
}
