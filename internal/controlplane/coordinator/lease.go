package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// Gateways ask the stores that sidecars reach through this controller, for one term. An
// address is that of policy.Store.Sent. Apply is safe for concurrent use, also with the
// other methods, which are called one at a time.
type Gateways interface {
	// Keep has the store be open in the version of its credentials that is named. It may ask
	// for these.
	Keep(ctx context.Context, of policy.Store)
	// Retain closes all stores but those of the addresses. It does not wait for calls.
	Retain(used map[string]struct{})
	// Apply has the store decide by its own clock. It is bounded in time, and returns at once
	// while too many calls are under way. An error has nothing of where the store is, nor of
	// what it sent; one that is not of an outage is a *store.Failure.
	Apply(ctx context.Context, address string, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error)
	// Close closes all stores after their last calls. Nothing is called afterwards.
	Close()
}

// noGateways are those of a controller that connects to no store.
type noGateways struct{}

// Keep implements Gateways.
func (noGateways) Keep(context.Context, policy.Store) {}

// Retain implements Gateways.
func (noGateways) Retain(map[string]struct{}) {}

// Apply implements Gateways.
func (noGateways) Apply(context.Context, string, store.Key, limiter.Params, limiter.Command) (limiter.Result, error) {
	return limiter.Result{}, unavailable("this controller connects to no store")
}

// Close implements Gateways.
func (noGateways) Close() {}

// serveLease answers a lease. A limit that draws from a budget may wait for another cluster,
// and a durable counter for a write to the API server: the session's other messages go on
// meanwhile. So they do while another store is asked.
func (t *term) serveLease(ctx context.Context, s *session, r *fleetpb.LeaseRequest) {
	s.awaitConfig(ctx)
	limit, err := s.limit(r)
	answer := func(err error) {
		if limiter.Op(r.GetOp()) != limiter.Return {
			if !s.parts.Answer() {
				return // what is granted would be lost: it is asked of the next leader
			}
			defer s.parts.Answered()
		}
		reply, malformed := t.lease(ctx, limit, err, r)
		if reply.GetError() != "" && (t.parting.Load() || t.promises.Over(t.clock.Now())) {
			return // the good-bye that follows has it be asked of the next leader
		}
		message := &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Lease{Lease: reply}}
		switch wrong := (rejection{kind: leaseRow, of: namedBy(r), err: reply.GetError()}); {
		case limiter.Op(r.GetOp()) != limiter.Return:
			if malformed {
				t.reject(s, wrong)
			}
			s.answer(ctx, message)
		case malformed:
			wrong.kind = returnRow
			t.reject(s, wrong)
			s.answer(ctx, answerOf([]rejection{wrong}))
		}
	}
	switch {
	case limit == nil:
		answer(err)
	case limit.gateway != "":
		if !s.asyncThrough(limit.gateway, func() { answer(nil) }) {
			answer(unavailable("%d leases of this sidecar wait for the store of policy %s already", maxThrough, limit.scope.Policy))
		}
	case t.mayDraw(limit) || limit.params.Retention.Durable:
		s.async(ctx, func() { answer(nil) })
	default:
		answer(nil)
	}
}

// lease applies a holder's command to the limit, nil for the error, and returns the
// answer. It reports whether no holder may send such a command.
func (t *term) lease(ctx context.Context, limit *published, err error, r *fleetpb.LeaseRequest) (reply *fleetpb.LeaseReply, malformed bool) {
	reply = &fleetpb.LeaseReply{Id: r.GetId(), Term: t.number}
	var res limiter.Result
	if err == nil {
		res, err = t.apply(ctx, limit, r)
	}
	if err != nil {
		t.metrics.leases.WithLabelValues("Error").Inc()
		outage, ok := errors.AsType[*store.UnavailableError](err)
		reply.Error, reply.Defect, reply.OfLimit = shortened(err.Error(), maxReason), !ok, ok && outage.Part != nil
		_, ofStore := errors.AsType[*store.Failure](err)
		if malformed = !ok && !ofStore; malformed {
			reply.Error = shortened(reply.GetError(), maxReason-len(cure)) + cure
		}
	} else {
		t.metrics.leases.WithLabelValues(res.Reason.String()).Inc()
		fillLease(reply, &res)
		if limit.gateway != "" && !limit.clocks || limit.gateway == "" && !t.mayDraw(limit) {
			reply.ClockMicros = int64(res.Now)
		}
	}
	if limiter.Op(r.GetOp()) != limiter.Return {
		t.metrics.granted.Add(float64(res.Granted))
	}
	return reply, malformed
}

func fillLease(reply *fleetpb.LeaseReply, res *limiter.Result) {
	reply.Granted, reply.Remaining = res.Granted, res.Remaining
	reply.ExpiresInMicros, reply.RetryAfterMicros = int64(res.ExpiresIn), int64(res.RetryAfter)
	reply.Windows = windowsTo(res.Windows)
	reply.NowMicros, reply.Reason, reply.Algorithm = int64(res.Now), int32(res.Reason), int32(res.Algorithm)
	reply.Limit, reply.ResetAfterMicros, reply.DelayMicros = res.Limit, int64(res.ResetAfter), int64(res.Delay)
}

// namedBy returns the limit that the request names.
func namedBy(r *fleetpb.LeaseRequest) limitName {
	key := r.GetKey()
	return limitName{policy: types.NamespacedName{Namespace: key.GetNamespace(), Name: key.GetPolicy()}, limit: key.GetLimit()}
}

func (t *term) apply(ctx context.Context, limit *published, r *fleetpb.LeaseRequest) (limiter.Result, error) {
	c, err := command(r)
	if err != nil {
		return limiter.Result{}, err
	}
	if limit.gateway != "" {
		return t.applyThrough(ctx, limit, r, c)
	}
	hash, ok := t.counters.of(limit, r.GetKey().GetHash(), c, t.sessions.len, t.clock.Now())
	if !ok {
		return limiter.Result{Reason: limiter.Forfeited}, nil
	}
	// An older generation works by the present rates until a holder asked with a
	// newer one; from then on Step refuses it.
	params := limit.of(hash)
	params.Generation = r.GetGeneration()
	res, err := t.decide(ctx, limit, store.Key{Scope: limit.scope, Hash: hash}, params, c)
	if err != nil {
		return limiter.Result{}, t.ofLimit(limit, err)
	}
	// Leadership is looked at after the grant was made: if it is held now, it was
	// held then, however long this process was suspended in between. The promises of
	// holders count the same way.
	if now := t.clock.Now(); !t.covers(now) || t.promises.Over(now) {
		return limiter.Result{}, unavailable("term %d may have ended", t.number)
	}
	return res, nil
}

// applyThrough has the store of the limit decide, which neither leadership nor a term matters
// to. The rates that the holder sends do not count here either.
func (t *term) applyThrough(ctx context.Context, limit *published, r *fleetpb.LeaseRequest, c limiter.Command) (limiter.Result, error) {
	hash := r.GetKey().GetHash()
	params := limit.of(hash)
	params.Generation = r.GetGeneration()
	return t.gateways.Apply(ctx, limit.gateway, store.Key{Scope: limit.scope, Hash: hash}, params, c)
}

// ofLimit returns the error of a decision. One that may be of a budget speaks for the
// limits that draw from it: the others of the holder need nothing but this controller.
func (t *term) ofLimit(limit *published, err error) error {
	outage, ok := errors.AsType[*store.UnavailableError](err)
	if !ok || !t.mayDraw(limit) {
		return err
	}
	return &store.UnavailableError{Store: outage.Store, Cause: outage.Cause, Part: limit.scope}
}

// limit returns what the request's counter works by. A holder reaches only the
// counters of its own namespace, by what was published and not by its word.
func (s *session) limit(r *fleetpb.LeaseRequest) (*published, error) {
	key, name := r.GetKey(), namedBy(r)
	if name.policy.Namespace != s.Namespace {
		return nil, fmt.Errorf("policy %s is not of this pod's namespace", name.policy)
	}
	by, sent := s.served()
	if by == nil {
		return nil, unavailable("policy %s is not known to this controller yet", name.policy)
	}
	limit := by.limits[name]
	switch {
	case limit == nil && !sent:
		return nil, notServed(name, "limit %q of policy %s is not among what can be put in force on this pod; the policy's conditions say why", name.limit, name.policy)
	case limit == nil:
		return nil, notServed(name, "limit %q of policy %s does not apply to this pod", name.limit, name.policy)
	case limit.gateway != r.GetGateway():
		return nil, notServed(name, "policy %s does not keep its counters where this sidecar asks for them", name.policy)
	case !limit.here && limit.gateway == "":
		return nil, notServed(name, "policy %s does not keep its counters in this controller", name.policy)
	case key.GetHash() != "" && !limit.keyed && r.GetGeneration() < limit.params.Generation:
		return nil, notServed(name, "limit %q of policy %s has no key any more", name.limit, name.policy)
	case key.GetHash() != "" && (!limit.keyed || !validHash(key.GetHash())):
		return nil, fmt.Errorf("limit %q of policy %s has no counter %q", name.limit, name.policy, key.GetHash())
	case r.GetGeneration() > limit.params.Generation:
		return nil, notServed(name, "generation %d of policy %s is not known to this controller yet", r.GetGeneration(), name.policy)
	case limit.budget != nil:
		return limit, nil // its rate is the budget's, which is edited by itself
	case r.GetGeneration() == limit.params.Generation && !slices.Equal(ratesFrom(r.GetRates()), limit.of(key.GetHash()).Rates):
		return nil, fmt.Errorf("limit %q of policy %s has other rates", name.limit, name.policy)
	}
	return limit, nil
}

// notServed says why there is no decision on a limit now although the request is sound:
// the holder and this controller may know different versions of its policy.
func notServed(name limitName, format string, args ...any) error {
	limit := store.Scope{Namespace: name.policy.Namespace, Policy: name.policy.Name, Limit: name.limit}
	return &store.UnavailableError{Store: "the controller's store", Cause: fmt.Errorf(format, args...), Part: limit}
}

// unavailable says why there is no decision on any limit now.
func unavailable(format string, args ...any) error {
	return &store.UnavailableError{Store: "the controller's store", Cause: fmt.Errorf(format, args...)}
}

func command(r *fleetpb.LeaseRequest) (limiter.Command, error) {
	c := limiter.Command{
		Min: r.GetMin(), Want: r.GetWant(), First: r.GetFirst(), Tenant: r.GetTenant(),
		Floor: limiter.Instant(r.GetFloorMicros()),
	}
	if c.Tenant != "" && !validHash(c.Tenant) {
		return c, fmt.Errorf("tenant hash %q", c.Tenant)
	}
	switch r.GetOp() {
	case int32(limiter.Take), int32(limiter.Peek): // a holder may not reset
		c.Op = limiter.Op(r.GetOp())
		return c, nil
	case int32(limiter.Return):
		c.Op, c.At = limiter.Return, limiter.Instant(r.GetAtMicros())
		var err error
		c.Windows, err = windowsFrom(r.GetWindows())
		return c, err
	default:
		return c, fmt.Errorf("op %d", r.GetOp())
	}
}
