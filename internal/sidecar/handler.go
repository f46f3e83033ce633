package sidecar

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/stores"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/policy/revision"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A handler does what the controller asks for.
type handler struct{ p *process }

var _ interface {
	fleet.Handler
	fleet.Editor
} = handler{}

func (h handler) InForce() (version string, holders []*fleetpb.Holders_Count) {
	return h.version(), h.p.enforcer.Holders()
}

// version is empty while the pod's mode keeps the policies from being enforced, while a
// part of them is refused, and until the controller has sent what to enforce. An empty
// version does not say what is in force.
func (h handler) version() string {
	select {
	case <-h.p.configured:
	default:
		return ""
	}
	_, version := h.p.enforcer.Set()
	if h.p.cfg.mode != enforce.Enforce || len(h.p.Refused()) > 0 {
		return ""
	}
	return version
}

// Apply puts the snapshot in force, with the credentials of its stores. The controller is
// sent every part that is not: acknowledged would read as enforced. So is it of a mode
// that keeps policies from being enforced.
func (h handler) Apply(version string, snapshot []byte, secrets []*fleetpb.Secret) error {
	defer h.p.configuring.Do(func() { close(h.p.configured) })
	h.p.stores.Learn(secretsOf(secrets))
	return h.adopted(version, h.p.adoptWhole(version, snapshot))
}

// Edit puts in force what the edit makes of the version that is.
func (h handler) Edit(e revision.Edit, secrets []*fleetpb.Secret, renewed bool) error {
	next, err := h.p.held.Load().Edited(e)
	if errors.Is(err, revision.ErrBase) {
		h.p.log.Info("an edit cannot be made of the version in force; the whole is asked for", "version", e.Version, "reason", err)
		return err
	}
	defer h.p.configuring.Do(func() { close(h.p.configured) })
	if renewed {
		h.p.stores.Learn(secretsOf(secrets))
	}
	if err == nil {
		err = h.p.adopt(next)
	}
	return h.adopted(e.Version, err)
}

// adopted returns what the controller is sent of a version that was put in force, unless err says why
// it was not.
func (h handler) adopted(version string, err error) error {
	refused := h.p.Refused()
	switch {
	case err != nil:
		h.p.log.Error("a snapshot was refused; the last good one stays", "version", version, "error", err)
		return err
	case len(refused) > 0:
		h.p.log.Error("a part of the policies was refused; the rest is in force", "version", version, "error", refused)
		return refused
	}
	h.p.log.Info("policies are in force", "version", version)
	if mode := h.p.cfg.mode; mode != enforce.Enforce {
		return fmt.Errorf("the pod's mode is %s: nothing is refused", mode)
	}
	return nil
}

func (h handler) SetHolders(namespace, name string, n int64) {
	h.p.enforcer.SetHolders(namespace, name, n)
}

func (h handler) Reached(server string, by store.Reached) { h.p.stores.Reached(server, by) }

func (h handler) Report(now time.Time, session uint64) *fleetpb.Report {
	return &fleetpb.Report{Limits: h.p.enforcer.Report(now, session), Pools: h.p.pools.Report(session)}
}

func (h handler) Audit(q *fleetpb.AuditQuery) *fleetpb.AuditReply { return h.p.enforcer.Audit(q) }

func (h handler) Promise(now, until limiter.Instant) (begun limiter.Instant, ok bool) {
	return h.p.stores.Promise(now, until)
}

func secretsOf(in []*fleetpb.Secret) []stores.Secret {
	out := make([]stores.Secret, len(in))
	for i, s := range in {
		out[i] = stores.Secret{Name: s.GetName(), Version: s.GetVersion(), Data: s.GetData()}
	}
	return out
}

// Set returns the policies in force and their version.
func (p *process) Set() (*policy.Set, string) { return p.enforcer.Set() }

// Refused returns what of the newest snapshot is not in force.
func (p *process) Refused() policy.Refusals {
	return p.held.Load().Refused
}

// Limits returns the limits in force.
func (p *process) Limits() []enforce.LimitState { return p.enforcer.Limits() }

// Pools returns the pools in force.
func (p *process) Pools() []pools.State { return p.pools.States() }

// Fleet returns the state of that stream, nil when no controller is configured.
func (p *process) Fleet() *fleet.State {
	if p.fleet == nil {
		return nil
	}
	state := p.fleet.State()
	return &state
}

// unconfigured is the Controller store of a sidecar without a controller, and undivided
// the coordinator of its pools.
type (
	unconfigured struct{}
	undivided    struct{}
)

var errUnconfigured = errors.New("no --fleet-address is configured")

// Gateway implements stores.Controller.
func (u unconfigured) Gateway(string) twotier.Store { return u }

// Apply fails at once.
func (unconfigured) Apply(context.Context, store.Key, limiter.Params, limiter.Command) (limiter.Result, error) {
	return limiter.Result{}, &store.UnavailableError{Store: "controller", Cause: errUnconfigured}
}

// Apply fails at once.
func (undivided) Apply(context.Context, pool.Key, pool.Params, pool.Command) (pool.Grant, error) {
	return pool.Grant{}, &store.UnavailableError{Store: "controller", Cause: errUnconfigured}
}
