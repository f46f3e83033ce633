package coordinator

import (
	"context"
	"crypto/tls"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestWhoIsLetIn(t *testing.T) {
	web := pod("shop", "web-0")
	tests := map[string]struct {
		token string
		hello *fleetpb.Hello
		first *fleetpb.FromHolder
		want  codes.Code
	}{
		"no token":                       {token: "", want: codes.Unauthenticated},
		"a token that is not accepted":   {token: "forged", want: codes.Unauthenticated},
		"a token of another namespace":   {token: tokenOf(pod("other", "web-0")), want: codes.PermissionDenied},
		"a token of another pod":         {token: tokenOf(podauth.Identity{Namespace: "shop", Pod: "web-1", PodUID: web.PodUID}), want: codes.PermissionDenied},
		"a token of the pod's successor": {token: tokenOf(podauth.Identity{Namespace: "shop", Pod: "web-0", PodUID: "later"}), want: codes.PermissionDenied},
		"no boot nonce":                  {token: tokenOf(web), hello: helloOf(web, ""), want: codes.InvalidArgument},
		"a boot nonce without end":       {token: tokenOf(web), hello: helloOf(web, string(make([]byte, 1000))), want: codes.InvalidArgument},
		"a version without end": {
			token: tokenOf(web), hello: &fleetpb.Hello{Namespace: "shop", Pod: "web-0", PodUid: web.PodUID, BootNonce: "1", Version: strings.Repeat("v", maxVersion+1)},
			want: codes.InvalidArgument,
		},
		"a config version without end": {
			token: tokenOf(web), hello: &fleetpb.Hello{Namespace: "shop", Pod: "web-0", PodUid: web.PodUID, BootNonce: "1", ConfigVersion: strings.Repeat("v", maxVersion+1)},
			want: codes.InvalidArgument,
		},
		"a pod's name without end": {
			token: tokenOf(web), hello: &fleetpb.Hello{Namespace: "shop", Pod: strings.Repeat("web", maxHeaders), PodUid: web.PodUID, BootNonce: "1"},
			want: codes.PermissionDenied,
		},
		"a message without end": {
			token: tokenOf(web), hello: &fleetpb.Hello{Namespace: "shop", Pod: "web-0", PodUid: web.PodUID, BootNonce: strings.Repeat("1", maxMessage)},
			want: codes.ResourceExhausted,
		},
		"a later term than this one": {
			token: tokenOf(web), hello: &fleetpb.Hello{Namespace: "shop", Pod: "web-0", PodUid: web.PodUID, BootNonce: "1", Term: 2},
			want: codes.Unavailable,
		},
		"a first message other than hello": {
			token: tokenOf(web), first: &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Leave{Leave: &fleetpb.Leave{}}},
			want: codes.InvalidArgument,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := lead(t, &memoryTerms{}, publishing())
				defer l.end()
				s := l.dial(tc.token)
				defer s.close()
				first := tc.first
				if first == nil {
					hello := tc.hello
					if hello == nil {
						hello = helloOf(web, "1")
					}
					first = &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: hello}}
				}
				_ = s.stream.Send(first) // the stream may have ended already
				if got := status.Code(s.failure()); got != tc.want {
					t.Errorf("code = %v, want %v", got, tc.want)
				}
			})
		})
	}
}

func TestHelloHasToComeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing())
		defer l.end()
		s := l.dial(tokenOf(pod("shop", "web-0")))
		defer s.close()
		if got := status.Code(s.failure()); got != codes.DeadlineExceeded {
			t.Errorf("code = %v, want %v", got, codes.DeadlineExceeded)
		}
	})
}

func TestOldTLSIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(), func(c *Config) { c.TLS.MinVersion = tls.VersionTLS12 })
		defer l.end()
		conn, err := l.listener.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		client := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: "fleet", MaxVersion: tls.VersionTLS12, NextProtos: []string{"h2"}})
		if err := client.HandshakeContext(t.Context()); err == nil {
			t.Error("TLS 1.2 was accepted")
		}
	})
}

func TestAnotherStreamOfThePodReplacesTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		defer l.end()
		first := l.connect(pod("shop", "web-0"), "1")
		defer first.close()
		first.config()
		second := l.connect(pod("shop", "web-0"), "2")
		defer second.close()
		second.config()
		if got := status.Code(first.failure()); got != codes.Aborted {
			t.Errorf("code = %v, want %v", got, codes.Aborted)
		}
		got := l.Observe("shop", "checkout")
		if got.Holders != 1 || len(got.Sessions) != 1 || got.Sessions[0].Nonce != "2" {
			t.Errorf("observation = %+v, want the second session alone", got)
		}
	})
}

func TestASilentSidecarIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		if got := status.Code(s.failure()); got != codes.DeadlineExceeded {
			t.Errorf("code = %v, want %v", got, codes.DeadlineExceeded)
		}
	})
}

// A sidecar that does not read loses its session; the others do not notice.
func TestASlowReaderHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 1, 1_000_000, limiter.Second)
		l := lead(t, &memoryTerms{}, publishing(p))
		defer l.end()
		slow := l.connect(pod("shop", "slow"), "1")
		defer slow.close()
		other := l.connect(pod("shop", "other"), "1")
		defer other.close()
		other.config()

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for ctx.Err() == nil {
				request := &fleetpb.LeaseRequest{Id: 1, Key: &fleetpb.Key{Namespace: "shop", Policy: "checkout", Limit: "all"}, Min: 1, Want: 1}
				if slow.stream.Send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Lease{Lease: request}}) != nil {
					return
				}
			}
		}()
		time.Sleep(time.Second) // the slow one's messages are stuck, and a window begins that is served
		began := time.Now()
		if reply := other.lease(p, p.Limits[0]); reply.GetGranted() != 1 {
			t.Errorf("reply = %v, want one unit", reply)
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the other sidecar waited %s", waited)
		}
		for range 1 + stallTimeout/time.Second {
			time.Sleep(time.Second)
			other.report()
		}
		if l.present.Load().sessions.of("slow-uid") != nil {
			t.Error("the slow sidecar still has its session")
		}
		if got := status.Code(slow.failure()); got != codes.ResourceExhausted {
			t.Errorf("code = %v, want %v", got, codes.ResourceExhausted)
		}
	})
}

func TestNobodyIsServedBeforeTheTermBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t, nil, publishing(), func(c *Config) { c.Terms = noTerms{} })
		l.start()
		time.Sleep(10 * time.Second)
		if got := l.Observe("shop", "checkout"); got.Term != 0 {
			t.Errorf("term = %d, want none", got.Term)
		}
		l.Refresh("shop")
		id := pod("shop", "web-0")
		s := l.dial(tokenOf(id))
		defer s.close()
		s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: helloOf(id, "1")}})
		if got := status.Code(s.failure()); got != codes.Unavailable {
			t.Errorf("code = %v, want %v", got, codes.Unavailable)
		}
		l.end()
	})
}

// noTerms is a TermStore that cannot be reached.
type noTerms struct{}

func (noTerms) Begin(context.Context, func() bool) (Handover, error) { return Handover{}, errNotSynced }
func (noTerms) End(context.Context, Handover) error                  { return errNotSynced }
func (noTerms) Clear(context.Context, uint64) error                  { return errNotSynced }
