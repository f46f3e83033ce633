package coordinator

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/store"
)

// The outcomes of a beat, as the metrics call them.
const (
	beatGranted     = "granted"
	beatQuarantined = "quarantined" // granted no more than what was in use
	beatUnavailable = "unavailable" // an outage: another beat may do better
	beatDefect      = "defect"      // nobody may send such a beat
)

// beat applies a holder's beat to its pool and returns the answer.
func (t *term) beat(ctx context.Context, s *session, h *fleetpb.Heartbeat) *fleetpb.ToHolder {
	share := &fleetpb.Share{Id: h.GetId()}
	grant, err := t.divide(ctx, s, h)
	if err != nil {
		_, outage := errors.AsType[*store.UnavailableError](err)
		share.Error, share.Defect = shortened(err.Error(), maxReason), !outage
		if share.GetDefect() {
			share.Error = shortened(share.GetError(), maxReason-len(cure)) + cure
			name := types.NamespacedName{Namespace: h.GetNamespace(), Name: h.GetPool()}
			t.reject(s, rejection{kind: beatRow, of: limitName{policy: objectOf(name)}, err: share.GetError()})
		}
	} else {
		fillShare(share, grant)
	}
	t.metrics.beats.WithLabelValues(became(share)).Inc()
	return &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Share{Share: share}}
}

func became(s *fleetpb.Share) string {
	switch {
	case s.GetDefect():
		return beatDefect
	case s.GetError() != "":
		return beatUnavailable
	case s.GetQuarantinedMicros() > 0:
		return beatQuarantined
	}
	return beatGranted
}

// divide works by the parameters that this controller published, whichever
// generation the holder runs: all of a pool's beats have to be judged by the same.
func (t *term) divide(ctx context.Context, s *session, h *fleetpb.Heartbeat) (pool.Grant, error) {
	s.awaitConfig(ctx)
	p, err := s.beatsFor(h)
	if err != nil {
		return pool.Grant{}, err
	}
	c := beatCommand(s.holder, h)
	grant, err := t.pools.Apply(ctx, p.key, p.params, c)
	if err != nil {
		return pool.Grant{}, err
	}
	// As of a lease, leadership is looked at after the grant was made.
	if !t.covers(t.clock.Now()) {
		return pool.Grant{}, withoutShare("term %d may have ended", t.number)
	}
	if c.Op == pool.Leave {
		s.left(p)
	}
	return grant, nil
}

// beatsFor returns what the holder's pool is divided by. A holder beats for the pool
// that it is served by. While it lets go of one that no longer applies to it, it beats for
// that one, too: what it has in flight counts until it is done.
func (s *session) beatsFor(h *fleetpb.Heartbeat) (*dividedPool, error) {
	name := types.NamespacedName{Namespace: h.GetNamespace(), Name: h.GetPool()}
	if name.Namespace != s.Namespace {
		return nil, fmt.Errorf("pool %s is not of this pod's namespace", name)
	}
	s.mu.Lock()
	by, sent, p := s.serves, s.sent, s.pools[name]
	s.mu.Unlock()
	switch {
	case by == nil:
		return nil, withoutShare("pool %s is not known to this controller yet", name)
	case p == nil && !sent:
		return nil, withoutShare("pool %s is not among what can be put in force on this pod; its conditions say why", name)
	case p == nil:
		return nil, withoutShare("pool %s does not apply to this pod", name)
	case !p.here:
		return nil, withoutShare("pool %s is not divided by this controller", name)
	case h.GetGeneration() > p.params.Generation:
		return nil, withoutShare("generation %d of pool %s is not known to this controller yet", h.GetGeneration(), name)
	}
	return p, nil
}

// left notes that the holder let go of a pool, if it is not served by the pool again.
func (s *session) left(p *dividedPool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serves.hasPool(p.name) {
		delete(s.pools, p.name)
	}
}

// withoutShare says why there is no share now although the beat is sound.
func withoutShare(format string, args ...any) error {
	return &store.UnavailableError{Store: "the controller's coordinator", Cause: fmt.Errorf(format, args...)}
}

// beatCommand returns what the beat says, of the holder that the stream proves.
func beatCommand(of audit.Holder, h *fleetpb.Heartbeat) pool.Command {
	c := pool.Command{
		Holder: of.PodUID() + "/" + of.Nonce(),
		Seq:    h.GetSeq(), Term: h.GetTerm(), Applied: h.GetApplied(), Held: h.GetHeld(),
		InFlight: h.GetInFlight(), Peak: h.GetPeak(), Limit: h.GetLimit(),
	}
	if op := h.GetOp(); op == int32(pool.Beat) || op == int32(pool.Leave) {
		c.Op = pool.Op(op)
	}
	return c
}

func fillShare(share *fleetpb.Share, g pool.Grant) {
	share.Seq, share.Term, share.Generation = g.Seq, g.Term, g.Generation
	share.Share, share.TtlMicros = g.Share, int64(g.TTL)
	share.Limit, share.Holders, share.Granted, share.InFlight = g.Limit, g.Holders, g.Granted, g.InFlight
	share.Occupied, share.Bound, share.QuarantinedMicros = g.Occupied, g.Bound, int64(g.Quarantined)
}
