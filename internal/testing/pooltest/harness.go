package pooltest

import (
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A harness adds to a subject what the tests have in common.
type harness struct{ Subject }

// Lengths of time for coordinators whose clock can only be waited for: short ends
// within a test, long does not.
const (
	short = limiter.Second
	long  = 600 * limiter.Second
)

func key(t *testing.T) pool.Key {
	return pool.Key{Cluster: "c", Namespace: "n", Name: t.Name()}
}

// fixed returns parameters of a pool whose limit nobody infers.
func fixed(limit int64) pool.Params {
	return pool.Params{Min: limit, Max: limit, Initial: limit, TTL: long, Quarantine: short, Generation: 1}
}

// A member is one holder that does as the coordinator says.
type member struct {
	h          *harness
	key        pool.Key
	params     pool.Params
	name       string
	seq        int64
	inFlight   int64
	limit      int64 // that it infers
	pool.Grant       // that it works by
}

// open returns the first holder of a pool that is in no quarantine.
func (h *harness) open(t *testing.T, p pool.Params, name string) *member {
	t.Helper()
	m := &member{h: h, key: key(t), params: p, name: name}
	m.beat(t)
	if m.Quarantined > 0 {
		h.Advance(m.Quarantined)
		m.beat(t)
	}
	return m
}

// with returns another holder of the same pool.
func (m *member) with(name string) *member {
	return &member{h: m.h, key: m.key, params: m.params, name: name}
}

// command returns what the holder would send next.
func (m *member) command(op pool.Op) pool.Command {
	m.seq++
	return pool.Command{
		Op: op, Holder: m.name, Seq: m.seq, Term: m.Term, Applied: m.Generation, Held: m.Share,
		InFlight: m.inFlight, Peak: m.inFlight, Limit: m.limit,
	}
}

// beat sends a command that must be answered, and takes the share.
func (m *member) beat(t *testing.T) pool.Grant {
	t.Helper()
	m.Grant = m.apply(t, m.command(pool.Beat))
	return m.Grant
}

// wants beats and expects a share.
func (m *member) wants(t *testing.T, share int64) {
	t.Helper()
	if g := m.beat(t); g.Share != share {
		t.Errorf("%s has a share of %d, want %d: %+v", m.name, g.Share, share, g)
	}
}

func (m *member) leave(t *testing.T) pool.Grant {
	t.Helper()
	return m.apply(t, m.command(pool.Leave))
}

// apply sends a command that must be answered.
func (m *member) apply(t *testing.T, c pool.Command) pool.Grant {
	t.Helper()
	g, err := m.h.Coordinator.Apply(t.Context(), m.key, m.params, c)
	if err != nil {
		t.Fatalf("Apply(%s, %+v, %+v): %v", m.key, m.params, c, err)
	}
	return g
}
