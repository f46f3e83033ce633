package concurrency

import (
	"time"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/concurrency/slots"
)

// Stats are the present figures of a guard. Counts are since it was made.
type Stats struct {
	Share    int64 // that it may use; 0 when it expired
	Ceiling  int64 // that is in force
	Inferred int64 // how many the backend bears, by what the guard infers
	InFlight int64 // where the limit is per key, of the key that has the most
	Keys     int   // with a request in flight, where the limit is per key
	Queued   int64

	Fenced bool // the share expired before the coordinator answered, and nothing is admitted
	Local  bool // the guard admits by what it infers alone

	Baseline time.Duration // latency without load, 0 while it is not known
	Latency  time.Duration // of the last request that was served, 0 before the first

	Admitted int64
	Refused  int64 // all verdicts but Admitted
	Fences   int64 // times that it was fenced
	Aborted  int64 // requests that were asked to end when it was
	Beats    int64 // commands sent to the coordinator

	// CoordinatorError is why the coordinator grants no share, nil when it does.
	CoordinatorError error
	// Grant is what the coordinator answered last, zero before it did; Quarantined
	// counts from now.
	Grant      pool.Grant
	Partitions []PartitionStats // in the order of Config.Slots.Partitions
}

// PartitionStats are the present figures of one partition.
type PartitionStats struct {
	Name       string
	Guaranteed int64 // slots of the ceiling
	InFlight   int64
	Queued     int64
	Refused    int64 // since the guard was made
}

// Stats returns the present figures.
func (g *Guard) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	ceiling := g.ceiling(now)
	s := Stats{
		Share: g.share.held(), Ceiling: ceiling, Inferred: g.law.Limit(),
		InFlight: g.held(), Queued: int64(g.table.Waiting()),
		Local:    g.local(now),
		Baseline: duration(g.law.Baseline()), Latency: duration(g.law.Latency()),
		Admitted: g.admitted, Refused: g.refused.total(), Fences: g.fences, Aborted: g.aborted,
		Beats:            g.link.beats,
		CoordinatorError: g.link.cause, Grant: g.link.grant,
		Partitions: make([]PartitionStats, len(g.config.Slots.Partitions)),
	}
	if g.keys != nil {
		s.Keys = g.keys.Len()
	}
	s.Fenced = g.share.known && !g.share.live && !s.Local
	s.Grant.Quarantined = 0
	if g.link.free > now {
		s.Grant.Quarantined = micros(time.Duration(g.link.free - now))
	}
	for i, p := range g.config.Slots.Partitions {
		u := g.table.Usage(i)
		s.Partitions[i] = PartitionStats{p.Name, u.Guarantee, u.InFlight, int64(u.Waiting), g.refused[i]}
	}
	return s
}

// Worst is the most that there was of something.
type Worst struct {
	Peak int64 // in flight in this process, as Stats.InFlight
	// Occupied and Bound are those of the coordinator's answer in which the first
	// exceeded the second by the most; see pool.Grant. Zero when it did not answer.
	Occupied, Bound int64
}

// see notes an answer.
func (w *Worst) see(g pool.Grant) {
	if w.Bound == 0 || g.Occupied-g.Bound > w.Occupied-w.Bound {
		w.Occupied, w.Bound = g.Occupied, g.Bound
	}
}

// TakeWorst returns the most since it was called last. It is for one caller.
func (g *Guard) TakeWorst() Worst {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.worst
	g.worst = Worst{Peak: g.held()}
	return w
}

// refusals counts refused requests of each partition, those of the Rest at the end.
type refusals []int64

func newRefusals(c slots.Config) refusals { return make(refusals, len(c.Partitions)+1) }

func (r refusals) count(partition int) {
	if partition < 0 || partition >= len(r)-1 {
		partition = len(r) - 1
	}
	r[partition]++
}

func (r refusals) total() int64 {
	var sum int64
	for _, n := range r {
		sum += n
	}
	return sum
}

// under returns the counts under another configuration: what has no partition of its
// name there is of the Rest.
func (r refusals) under(from, to slots.Config) refusals {
	next := newRefusals(to)
	rest := len(next) - 1
	for i, n := range r {
		j := rest
		if i < len(from.Partitions) {
			for k, p := range to.Partitions {
				if p.Name == from.Partitions[i].Name {
					j = k
				}
			}
		}
		next[j] += n
	}
	return next
}
