package concurrency

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// past is before every instant; 0 need not be.
const past = math.MinInt64

// A share is what a holder was granted last. Instants are nanoseconds of the guard's
// clock.
type share struct {
	known            bool  // there was ever one
	live             bool  // it has not expired
	term, generation int64 // 0 while there never was one
	units            int64
	seq              int64 // of the beat that it answers
	expires          int64 // at the earliest for the coordinator; the margin before for the holder
}

// take puts a granted share in the place of the last one. The beat that it answers was
// sent at the instant, or later. It reports false when a later beat was answered
// before, or reached the coordinator before, which makes the answer worthless.
func (s *share) take(sent int64, c pool.Command, g pool.Grant) (bool, error) {
	switch {
	case c.Seq <= s.seq, g.Seq > c.Seq: // a later beat overtook it
		return false, nil
	case g.Seq < c.Seq:
		return false, fmt.Errorf("beat %d was answered with the share of beat %d", c.Seq, g.Seq)
	case g.Term < s.term, g.Term == s.term && g.Generation < s.generation:
		return false, fmt.Errorf("granted share %d of term %d, older than share %d of term %d", g.Generation, g.Term, s.generation, s.term)
	}
	units := g.Share
	if g.Quarantined > 0 {
		// The memory before may have given a share that expired on the way to others.
		units = min(units, s.held())
	}
	*s = share{
		known: true, live: true,
		term: g.Term, generation: g.Generation, units: units,
		seq: c.Seq, expires: sent + int64(lifetime(g.TTL)),
	}
	return true, nil
}

// lifetime returns how long a share may be used that lasts ttl by the coordinator's
// clock. Two quartz clocks part by less than 200 ppm; a millisecond covers how coarsely
// they are read.
func lifetime(ttl limiter.Micros) time.Duration {
	d := duration(ttl)
	return d - d/5000 - time.Millisecond
}

// ends returns when the holder has to stop using the share.
func (s *share) ends(margin time.Duration) int64 { return s.expires - int64(margin) }

// expire ends the share if it is time, and reports whether it just did.
func (s *share) expire(now int64, margin time.Duration) bool {
	if !s.live || now < s.ends(margin) {
		return false
	}
	s.live = false
	return true
}

// held returns how much the holder may have in flight by the share.
func (s *share) held() int64 {
	if !s.live {
		return 0
	}
	return s.units
}

func duration(d limiter.Micros) time.Duration { return time.Duration(d) * time.Microsecond }

func micros(d time.Duration) limiter.Micros { return limiter.Micros(d / time.Microsecond) }
