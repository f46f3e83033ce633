package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/internal/sidecar/stores"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/policy/revision"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A sidecar is what talks to the controller in a real one.
type sidecar struct {
	of       *sidecars
	client   *fleet.Client
	enforcer *enforce.Enforcer
	stores   *stores.Pool
	held     *revision.Held
}

var _ interface {
	fleet.Handler
	fleet.Editor
} = (*sidecar)(nil)

// serviceAddress stands for that of the Service, behind which is the leader.
const serviceAddress = "127.127.0.1:15030"

// addressOf returns the address of a pod on this machine. The controller bounds what it admits of
// one address, so sidecars do not share one.
func addressOf(i int) netip.Addr { return netip.AddrFrom4([4]byte{127, 128, byte(i >> 8), byte(i)}) }

func (f *sidecars) newSidecar(pod fleet.Identity, tokenFile string, from netip.Addr) (*sidecar, error) {
	s := &sidecar{of: f, held: &none}
	log := slog.New(slog.DiscardHandler)
	var err error
	s.client, err = fleet.New(fleet.Config{
		Address: serviceAddress, ServerName: "weir-fleet.weir-system.svc", CABundle: f.ca, TokenFile: tokenFile, Identity: pod, Log: log,
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			if address == serviceAddress {
				address = f.world.service.Load().FleetAddress()
			}
			d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
			return d.DialContext(ctx, "tcp", address)
		},
	})
	if err != nil {
		return nil, err
	}
	s.stores = stores.NewPool(s.client, s.client.Coordinator(), unobserved{}, log)
	s.enforcer = enforce.New(enforce.Config{
		Namespace: pod.Namespace, Mode: enforce.Enforce, Log: log, Stores: s.stores.User(),
		NewLimiter: func(c twotier.Config, st twotier.Store) (enforce.Limiter, error) { return twotier.New(c, st) },
	})
	return s, nil
}

// InForce implements fleet.Handler.
func (s *sidecar) InForce() (version string, holders []*fleetpb.Holders_Count) {
	_, version = s.enforcer.Set()
	return version, s.enforcer.Holders()
}

// Apply implements fleet.Handler.
func (s *sidecar) Apply(version string, snapshot []byte, _ []*fleetpb.Secret) error {
	return s.adopt(version, func(held *revision.Held) (*revision.Held, error) { return held.Whole(version, snapshot) })
}

// Edit implements fleet.Editor.
func (s *sidecar) Edit(e revision.Edit, _ []*fleetpb.Secret, _ bool) error {
	return s.adopt(e.Version, func(held *revision.Held) (*revision.Held, error) { return held.Edited(e) })
}

// adopt puts in force what build makes of the version that is.
func (s *sidecar) adopt(version string, build func(*revision.Held) (*revision.Held, error)) error {
	next, err := s.of.read(s.held, version, build)
	if err != nil {
		return err
	}
	if err := s.enforcer.Apply(next.Set, next.Version); err != nil {
		return err
	}
	s.held = next
	s.of.applied(s, next.Set, time.Now())
	return nil
}

// SetHolders implements fleet.Handler.
func (s *sidecar) SetHolders(namespace, name string, n int64) {
	s.of.messages.Add(1)
	s.enforcer.SetHolders(namespace, name, n)
}

// Reached implements fleet.Handler.
func (s *sidecar) Reached(server string, by store.Reached) { s.stores.Reached(server, by) }

// Promise implements fleet.Handler.
func (s *sidecar) Promise(now, until limiter.Instant) (limiter.Instant, bool) {
	return s.stores.Promise(now, until)
}

// Report implements fleet.Handler.
func (s *sidecar) Report(now time.Time, session uint64) *fleetpb.Report {
	return &fleetpb.Report{Limits: s.enforcer.Report(now, session)}
}

// Audit implements fleet.Handler.
func (s *sidecar) Audit(q *fleetpb.AuditQuery) *fleetpb.AuditReply { return s.enforcer.Audit(q) }

// check asks the limit of a policy once.
func (s *sidecar) check(ctx context.Context, of string) (twotier.Decision, error) {
	return s.enforcer.Check(ctx, enforce.Query{Policy: of, Limit: "all", Cost: 1})
}

// read asks what the limit of a policy would decide, and takes nothing. Without an answer of
// the store it returns an error.
func (s *sidecar) read(ctx context.Context, of string) error {
	_, err := s.enforcer.Check(ctx, enforce.Query{Policy: of, Limit: "all", Cost: 1, Peek: true})
	return err
}

// unobserved drops what stores are observed by.
type unobserved struct{}

func (unobserved) Called(policy.Store, time.Duration, error) {}
func (unobserved) Refilled(store.Scope, time.Duration)       {}
func (unobserved) Closed(policy.Store)                       {}

// snapshots are compiled once for all sidecars, whose processes would each do it on a
// node of their own.
type snapshots struct {
	mu    sync.Mutex
	known map[made]*revision.Held
}

// made is a version, and what it was made of.
type made struct {
	of      *revision.Held
	version string
}

// read returns what build makes of the version that is held.
func (k *snapshots) read(held *revision.Held, version string, build func(*revision.Held) (*revision.Held, error)) (*revision.Held, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	of := made{held, version}
	if next := k.known[of]; next != nil {
		return next, nil
	}
	next, err := build(held)
	if err != nil {
		return nil, err
	}
	if len(next.Refused) > 0 {
		return nil, fmt.Errorf("a part is refused: %w", next.Refused)
	}
	if len(k.known) > 16 {
		clear(k.known)
	}
	k.known[of] = next
	return next, nil
}

// none is what all sidecars begin with.
var none revision.Held
