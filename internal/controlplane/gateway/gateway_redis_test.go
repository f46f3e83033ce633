package gateway_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/records"
	"github.com/weir-dev/weir/internal/controlplane/gateway"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/internal/sidecar/stores"
	"github.com/weir-dev/weir/internal/testing/devcluster/link"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// limit is that of a second.
const limit = 200

// TestALimitHoldsWhileItsControllerIsLost: two sidecars lease from a Redis through a leader that
// they lose in the midst of it. It goes on leading, as it believes, beside the next one.
func TestALimitHoldsWhileItsControllerIsLost(t *testing.T) {
	t.Parallel() // it waits for windows
	w := newWorld(t, redistest.Start(t).Addr, policy.Consistency{Mode: policy.Leased, Size: policy.Adaptive, Batch: 5, Min: 1, Max: 100, Expiry: policy.Coupled})
	first, next := w.lead(), w.lead()
	way, err := link.Open(first)
	if err != nil {
		t.Fatal(err)
	}
	defer way.Close()
	var counts windows
	var traffic sync.WaitGroup
	ctx, stop := context.WithTimeout(t.Context(), 8*time.Second)
	defer stop()
	for i := range 2 {
		s := w.sidecar(way.Address(), i)
		traffic.Go(func() { counts.load(ctx, s) })
	}
	<-time.After(4 * time.Second)
	lost := time.Now()
	way.SetServer(next)
	way.Reset()
	traffic.Wait()
	whole := map[bool]int{} // windows, by whether they begin after the loss
	for index, admitted := range counts.by {
		if admitted > limit {
			t.Errorf("window %d admitted %d of %d", index, admitted, limit)
		}
		if admitted == limit {
			whole[index > lost.Unix()]++
		}
	}
	if whole[false] == 0 || whole[true] == 0 {
		t.Errorf("no window before or after the loss admitted all of its limit: %v", counts.by)
	}
}

// windows counts what was admitted of each, by its index.
type windows struct {
	mu sync.Mutex
	by map[int64]int64
}

// load asks the sidecar for more than there is until ctx is done.
func (w *windows) load(ctx context.Context, s *sidecar) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		d, err := s.enforcer.Check(ctx, enforce.Query{Policy: "checkout", Limit: "all", Cost: 1})
		if err != nil || !d.Allowed {
			continue
		}
		w.mu.Lock()
		if w.by == nil {
			w.by = map[int64]int64{}
		}
		w.by[d.Windows.Open[0].Index]++
		w.mu.Unlock()
	}
}

// BenchmarkLeases sets leases through the controller beside direct ones. Leases are of one unit
// each, so that all of them reach the Redis, of 64 keys that 8 sidecars ask for at the same time.
// The controller and the sidecars are one process, whose time is that of both ends of a stream.
func BenchmarkLeases(b *testing.B) {
	const sidecars, keys = 8, 64
	for _, through := range []bool{false, true} {
		b.Run(map[bool]string{false: "Direct", true: "Gateway"}[through], func(b *testing.B) {
			server := redistest.Start(b)
			w := newWorld(b, server.Addr, policy.Consistency{Mode: policy.Strict})
			ways := make([]twotier.Store, sidecars)
			if through {
				leads := w.lead()
				for i := range ways {
					s := w.sidecar(leads, i)
					ways[i] = s.client.Gateway(w.policy.Store.Sent().Address)
				}
			} else {
				for i := range ways {
					opened, err := backend.Opener{}.Open(w.policy.Store, nil)
					if err != nil {
						b.Fatal(err)
					}
					defer func() { _ = opened.Close() }()
					ways[i] = opened
				}
			}
			lease := func(at twotier.Store, key int) error {
				_, err := at.Apply(b.Context(), store.Key{
					Scope: store.Scope{Cluster: "test", Namespace: "shop", Policy: "checkout", Limit: "all"}, Hash: fmt.Sprintf("%032x", key),
				}, w.policy.Limits[0].Params(&w.policy), limiter.Command{Op: limiter.Take, Min: 1, Want: 1})
				return err
			}
			for _, at := range ways {
				eventually(b, func() bool { return lease(at, 0) == nil })
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			var work sync.WaitGroup
			before, began := computed(b), time.Now()
			b.ResetTimer()
			for key := range keys {
				work.Go(func() {
					for left.Add(-1) >= 0 {
						if err := lease(ways[key%sidecars], key); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			work.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "leases/s")
			b.ReportMetric(float64((computed(b)-before).Microseconds())/float64(b.N), "cpu-µs/lease")
		})
	}
}

// computed returns for how long this process was computing.
func computed(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func eventually(t testing.TB, holds func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			t.Fatal("it takes too long")
		}
	}
}

// A world is controllers and sidecars of one policy, whose counters are in a Redis behind the
// controllers.
type world struct {
	testing.TB
	policy      policy.Policy
	terms       terms
	certificate tls.Certificate
	authority   []byte
}

func newWorld(t testing.TB, address string, mode policy.Consistency) *world {
	w := &world{TB: t, policy: policy.Policy{
		Namespace: "shop", Name: "checkout", Generation: 1, Mode: policy.Enforce, Consistency: mode, OnStoreUnavailable: policy.Deny,
		Store:  policy.Store{Type: policy.RedisStore, Address: address, Gateway: true},
		Limits: []policy.Limit{{Name: "all", Rates: []limiter.Rate{{Limit: limit, Window: limiter.Second}}}},
	}}
	if mode.Mode == policy.Strict {
		w.policy.Limits[0].Rates[0].Limit = limiter.MaxLimit
		w.policy.Limits[0].Key = &policy.Key{Parts: []policy.KeyPart{{Type: policy.ClientIPKey}}, OnMissing: policy.Shared, MaxKeys: 100}
	}
	w.certificate, w.authority = selfSigned(t)
	return w
}

// lead starts a controller that leads until the test ends, and returns where.
func (w *world) lead() (address string) {
	w.Helper()
	address = redistest.FreeAddr(w)
	c := coordinator.New(coordinator.Config{
		Address: address, TLS: &tls.Config{Certificates: []tls.Certificate{w.certificate}}, Authenticator: tokens{}, Resolver: w, Terms: &w.terms,
		Gateways: func() coordinator.Gateways {
			return gateway.New(gateway.Config{Open: backend.Opener{}.Open, Secret: w.Secret, Log: logr.Discard()})
		},
	})
	ctx, stop := context.WithCancel(log.IntoContext(context.Background(), logr.Discard()))
	stopped := make(chan error, 1)
	go func() { stopped <- c.Start(ctx) }()
	w.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			w.Error(err)
		}
		c.Close()
	})
	eventually(w, func() bool { _, leads := c.Now(); return leads })
	return address
}

// Namespace implements coordinator.Resolver.
func (w *world) Namespace(context.Context, string) (func(context.Context, string, string) (*policy.Snapshot, error), error) {
	out := &policy.Snapshot{Cluster: "test", Policies: []policy.Policy{w.policy}}
	return func(context.Context, string, string) (*policy.Snapshot, error) { return out, nil }, nil
}

// Secret implements coordinator.Resolver.
func (w *world) Secret(context.Context, policy.Store) (map[string][]byte, error) { return nil, nil }

// terms are kept in memory.
type terms struct{ last atomic.Uint64 }

func (n *terms) Begin(context.Context, func() bool) (records.Handover, error) {
	term := n.last.Add(1)
	return records.Handover{Term: term, First: term == 1}, nil
}

func (n *terms) End(context.Context, records.Handover) error { return nil }

func (n *terms) Clear(context.Context, uint64) error { return nil }

// tokens spell the identity out.
type tokens struct{}

func (tokens) Authenticate(_ context.Context, token string) (podauth.Identity, error) {
	return podauth.Identity{Namespace: "shop", Pod: token, PodUID: token}, nil
}

// A sidecar is what leases in a real one.
type sidecar struct {
	client   *fleet.Client
	enforcer *enforce.Enforcer
	stores   *stores.Pool
}

// sidecar starts one that runs until the test ends, and waits until it has its policy.
func (w *world) sidecar(address string, n int) *sidecar {
	w.Helper()
	pod := fmt.Sprint("web-", n)
	token := filepath.Join(w.TempDir(), "token")
	if err := os.WriteFile(token, []byte(pod), 0o600); err != nil {
		w.Fatal(err)
	}
	s, quiet := &sidecar{}, slog.New(slog.DiscardHandler)
	var err error
	s.client, err = fleet.New(fleet.Config{
		Address: address, ServerName: "fleet", CABundle: w.authority, TokenFile: token, Log: quiet,
		Identity: fleet.Identity{Namespace: "shop", Pod: pod, PodUID: pod, BootNonce: "1"},
	})
	if err != nil {
		w.Fatal(err)
	}
	s.stores = stores.NewPool(s.client, s.client.Coordinator(), unobserved{}, quiet)
	s.enforcer = enforce.New(enforce.Config{
		Namespace: "shop", Mode: enforce.Enforce, Log: quiet, Stores: s.stores.User(),
		NewLimiter: func(c twotier.Config, st twotier.Store) (enforce.Limiter, error) { return twotier.New(c, st) },
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.client.Run(ctx, s)
	}()
	w.Cleanup(func() {
		stop()
		<-done
		s.enforcer.Close(context.Background())
	})
	eventually(w, func() bool { _, version := s.enforcer.Set(); return version != "" })
	return s
}

func (s *sidecar) InForce() (version string, holders []*fleetpb.Holders_Count) {
	_, version = s.enforcer.Set()
	return version, s.enforcer.Holders()
}

func (s *sidecar) Apply(version string, data []byte, secrets []*fleetpb.Secret) error {
	snapshot, err := policy.Decode(data)
	if err != nil {
		return err
	}
	if len(secrets) > 0 || strings.Contains(string(data), "127.0.0.1") {
		return fmt.Errorf("it is sent %d Secrets with %s", len(secrets), data)
	}
	set, err := policy.Compile(snapshot)
	if err != nil {
		return err
	}
	return s.enforcer.Apply(set, version)
}

func (s *sidecar) SetHolders(namespace, name string, n int64) {
	s.enforcer.SetHolders(namespace, name, n)
}

func (s *sidecar) Reached(server string, by store.Reached) { s.stores.Reached(server, by) }

func (s *sidecar) Promise(now, until limiter.Instant) (limiter.Instant, bool) {
	return s.stores.Promise(now, until)
}

func (s *sidecar) Report(now time.Time, session uint64) *fleetpb.Report {
	return &fleetpb.Report{Limits: s.enforcer.Report(now, session)}
}

func (s *sidecar) Audit(q *fleetpb.AuditQuery) *fleetpb.AuditReply { return s.enforcer.Audit(q) }

// unobserved drops what stores are observed by.
type unobserved struct{}

func (unobserved) Called(policy.Store, time.Duration, error) {}
func (unobserved) Refilled(store.Scope, time.Duration)       {}
func (unobserved) Closed(policy.Store)                       {}

// selfSigned returns a certificate of the host fleet that is its own authority.
func selfSigned(t testing.TB) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"fleet"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
