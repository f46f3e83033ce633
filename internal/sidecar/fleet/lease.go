package fleet

import (
	"context"
	"fmt"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A target is a store that the leading controller asks on behalf of the sidecar.
type target struct {
	*Client
	gateway string       // policy.Store.Address of a store of type Gateway; empty for the controller's own
	floor   *store.Floor // of the store's clock
}

var _ interface {
	twotier.Store
	twotier.Reconnecting
} = (*target)(nil)

// Gateway returns the store of type Gateway of that address. Otherwise it is as the
// controller's own is: while there is no stream it fails at once. Its clock is not that of
// the controllers, so it does not matter to it who leads.
func (c *Client) Gateway(address string) twotier.Store {
	return &target{Client: c, gateway: address, floor: new(store.Floor)}
}

// Apply asks the store.
func (t *target) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	return t.apply(ctx, t, key, p, c)
}

// message returns the message that asks the store.
func (t *target) message(id uint64, key store.Key, p limiter.Params, c limiter.Command) *fleetpb.FromHolder {
	m := leaseMessage(id, key, p, c)
	m.GetLease().Gateway = t.gateway
	return m
}

func leaseMessage(id uint64, key store.Key, p limiter.Params, c limiter.Command) *fleetpb.FromHolder {
	request := &fleetpb.LeaseRequest{
		Id: id,
		Key: &fleetpb.Key{
			Namespace: key.Scope.Namespace, Policy: key.Scope.Policy, Limit: key.Scope.Limit, Hash: key.Hash,
		},
		Generation: p.Generation,
		Op:         int32(c.Op),
		Min:        c.Min,
		Want:       c.Want,
		AtMicros:   int64(c.At),
		First:      c.First,
		Tenant:     c.Tenant,

		FloorMicros: int64(c.Floor),
	}
	for _, r := range p.Rates {
		request.Rates = append(request.Rates, rateMessage(r))
	}
	for _, w := range c.Windows.Slice() {
		request.Windows = append(request.Windows, &fleetpb.Window{Rate: rateMessage(w.Rate), Index: w.Index, Granted: w.Granted})
	}
	return &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Lease{Lease: request}}
}

func rateMessage(r limiter.Rate) *fleetpb.Rate {
	return &fleetpb.Rate{
		Limit: r.Limit, WindowMicros: int64(r.Window), Burst: r.Burst, OffsetMicros: int64(r.Offset), Monthly: r.Monthly,
	}
}

func rateFrom(r *fleetpb.Rate) limiter.Rate {
	return limiter.Rate{
		Limit: r.GetLimit(), Window: limiter.Micros(r.GetWindowMicros()), Burst: r.GetBurst(),
		Offset: limiter.Micros(r.GetOffsetMicros()), Monthly: r.GetMonthly(),
	}
}

// resultOf reads a reply. A value that this version does not know is a defect, not an
// outage: no failure action may turn it into an admission.
func resultOf(r *fleetpb.LeaseReply) (limiter.Result, error) {
	if len(r.GetWindows()) > limiter.MaxRates {
		return limiter.Result{}, fmt.Errorf("the controller's reply names %d windows, more than %d", len(r.GetWindows()), limiter.MaxRates)
	}
	if r.GetReason() < 0 || r.GetReason() > int32(limiter.Forfeited) {
		return limiter.Result{}, fmt.Errorf("the controller's reply has an unknown reason %d", r.GetReason())
	}
	if r.GetAlgorithm() < 0 || r.GetAlgorithm() > int32(limiter.LeakyBucket) {
		return limiter.Result{}, fmt.Errorf("the controller's reply has an unknown algorithm %d", r.GetAlgorithm())
	}
	result := limiter.Result{
		Granted:    r.GetGranted(),
		Remaining:  r.GetRemaining(),
		ExpiresIn:  limiter.Micros(r.GetExpiresInMicros()),
		RetryAfter: limiter.Micros(r.GetRetryAfterMicros()),
		Now:        limiter.Instant(r.GetNowMicros()),
		Limit:      r.GetLimit(),
		ResetAfter: limiter.Micros(r.GetResetAfterMicros()),
		Delay:      limiter.Micros(r.GetDelayMicros()),
		Algorithm:  limiter.Algorithm(r.GetAlgorithm()),
		Reason:     limiter.Reason(r.GetReason()),
	}
	result.Windows.N = len(r.GetWindows())
	for i, w := range r.GetWindows() {
		result.Windows.Open[i] = limiter.OpenWindow{
			Rate:    rateFrom(w.GetRate()),
			Index:   w.GetIndex(),
			Granted: w.GetGranted(),
		}
	}
	return result, nil
}
