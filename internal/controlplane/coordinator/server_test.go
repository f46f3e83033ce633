package coordinator

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/grpc/test/bufconn"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/connlimit"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
)

// A street is a listener that is reached from any address. It counts what is open at its end.
type street struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	buffer int // bytes of a connection

	mu   sync.Mutex
	open int
}

// onStreet has the leader listen to a street.
func onStreet(l *leader) *street {
	s := &street{conns: make(chan net.Conn), closed: make(chan struct{}), buffer: 16 << 10}
	l.listen = func(context.Context, string) (net.Listener, error) { return s, nil }
	return s
}

func (s *street) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *street) Addr() net.Addr { return new(net.TCPAddr) }

func (s *street) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// from returns what connects from an address.
func (s *street) from(address string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		pair := bufconn.Listen(s.buffer)
		accepted := make(chan net.Conn, 1)
		go func() {
			c, _ := pair.Accept()
			accepted <- c
		}()
		client, err := pair.DialContext(ctx)
		if err != nil {
			return nil, err
		}
		s.count(1)
		select {
		case s.conns <- &onWay{Conn: <-accepted, street: s, from: netip.AddrPortFrom(netip.MustParseAddr(address), 40000)}:
			return client, nil
		case <-s.closed:
			return nil, net.ErrClosed
		}
	}
}

func (s *street) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += n
}

// opened returns how many are open.
func (s *street) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// onWay is the listener's end.
type onWay struct {
	net.Conn
	street *street
	from   netip.AddrPort
	once   sync.Once
}

func (c *onWay) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.from) }

func (c *onWay) Close() error {
	c.once.Do(func() { c.street.count(-1) })
	return c.Conn.Close()
}

// raw connects from the address and sends nothing.
func (s *street) raw(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := s.from(address)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return c
}

// isOpen reports whether the other end has not closed the connection, on which it sends nothing.
func isOpen(t *testing.T, c net.Conn) bool {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(time.Nanosecond))
	_, err := c.Read(make([]byte, 1))
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}

// metBy returns how often a bound was met.
func (l *leader) metBy(b connlimit.Bound) int {
	return int(testutil.ToFloat64(l.metrics.refusals.WithLabelValues(string(b))))
}

func (l *leader) connections(s connlimit.State) int {
	return int(testutil.ToFloat64(l.metrics.connections.WithLabelValues(s.String())))
}

// withStreet runs f with a leader that has places for that many connections without an
// authenticated stream.
func withStreet(t *testing.T, pending int, f func(t *testing.T, l *leader, s *street), change ...func(*Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t, &memoryTerms{}, publishing(), change...)
		l.unauthenticated = pending
		s := onStreet(l)
		l.start()
		defer l.end()
		f(t, l, s)
	})
}

// TestAConnectionWithoutAnAuthenticatedStreamEnds, whatever else goes over it.
func TestAConnectionWithoutAnAuthenticatedStreamEnds(t *testing.T) {
	for name, talk := range map[string]func(t *testing.T, c net.Conn, f *http2.Framer) error{
		"says nothing": func(*testing.T, net.Conn, *http2.Framer) error { return nil },
		"shakes hands": func(_ *testing.T, c net.Conn, _ *http2.Framer) error { return handshake(c) },
		"answers and sends pings": func(_ *testing.T, c net.Conn, f *http2.Framer) error {
			return errors.Join(handshake(c), greet(c, f))
		},
	} {
		t.Run(name, func(t *testing.T) {
			withStreet(t, 8, func(t *testing.T, l *leader, s *street) {
				client := tls.Client(s.raw(t, "10.0.0.1"), &tls.Config{RootCAs: roots, ServerName: "fleet", NextProtos: []string{"h2"}})
				defer func() { _ = client.Close() }()
				began := time.Now()
				_ = client.SetDeadline(began.Add(time.Hour))
				f := http2.NewFramer(client, client)
				if err := talk(t, client, f); err != nil {
					t.Fatal(err)
				}
				answerPings(client, f)
				synctest.Wait()
				if took := time.Since(began); took > connlimit.Timeout || s.opened() != 0 {
					t.Errorf("the connection ended after %s, want %s at most", took, connlimit.Timeout)
				}
				if n := l.connections(connlimit.Unauthenticated); n != 0 {
					t.Errorf("%d connections are shown", n)
				}
			})
		})
	}
}

func handshake(c net.Conn) error { return c.(*tls.Conn).Handshake() }

func greet(c io.Writer, f *http2.Framer) error {
	_, err := io.WriteString(c, http2.ClientPreface)
	return errors.Join(err, f.WriteSettings(), f.WriteSettingsAck())
}

// answerPings does so, and sends one with each, until the connection ends.
func answerPings(c io.Reader, f *http2.Framer) {
	if c.(*tls.Conn).ConnectionState().HandshakeComplete {
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			if ping, ok := frame.(*http2.PingFrame); ok && !ping.IsAck() {
				_ = f.WritePing(true, ping.Data)
				_ = f.WritePing(false, [8]byte{1})
			}
		}
	}
	_, _ = c.(*tls.Conn).NetConn().Read(make([]byte, 1))
}

// TestStreamsThatAreRefusedDoNotKeepAConnection.
func TestStreamsThatAreRefusedDoNotKeepAConnection(t *testing.T) {
	withStreet(t, 8, func(t *testing.T, l *leader, s *street) {
		began := time.Now()
		first := l.dialBy("forged", s.from("10.0.0.1"))
		defer first.close()
		if got := status.Code(first.failure()); got != codes.Unauthenticated {
			t.Fatalf("code = %v", got)
		}
		for time.Since(began) < connlimit.Timeout {
			if s.opened() != 1 {
				t.Fatalf("the connection ended after %s", time.Since(began))
			}
			next, err := fleetpb.NewFleetClient(first.conn).Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err = next.Recv(); status.Code(err) != codes.Unauthenticated {
				t.Fatalf("a stream without a token ended with %v", err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if s.opened() != 0 || l.metBy(connlimit.BoundTime) != 1 {
			t.Errorf("%d connections are open, the bound was met %d times", s.opened(), l.metBy(connlimit.BoundTime))
		}
	})
}

// TestAReviewThatTakesLongEndsNoConnection: the stream has its place in the queue.
func TestAReviewThatTakesLongEndsNoConnection(t *testing.T) {
	withStreet(t, 8, func(t *testing.T, l *leader, s *street) {
		idle := 4 * time.Second // before the stream
		connected := s.raw(t, "10.0.0.1")
		time.Sleep(idle)
		sidecar := l.dialBy(podToken("uid"), func(context.Context) (net.Conn, error) { return connected, nil })
		defer sidecar.close()
		synctest.Wait()
		if l.connections(connlimit.InReview) != 1 || l.connections(connlimit.Unauthenticated) != 0 {
			t.Errorf("%d connections are shown in review, %d without authentication", l.connections(connlimit.InReview), l.connections(connlimit.Unauthenticated))
		}
		id := podauth.Identity{Namespace: "shop", Pod: "web-0", PodUID: "uid"}
		sidecar.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: helloOf(id, "1")}})
		if m := sidecar.recv(); m.GetWelcome() == nil {
			t.Errorf("got %v, want a welcome", m)
		}
		time.Sleep(time.Second)
		if l.connections(connlimit.Authenticated) != 1 || l.metBy(connlimit.BoundTime) != 0 {
			t.Errorf("%d connections are authenticated, %d were late", l.connections(connlimit.Authenticated), l.metBy(connlimit.BoundTime))
		}
	}, func(c *Config) {
		c.Authenticator = podauth.NewReviewer(steady{authenticateTimeout - time.Second}, knownPods{}, nil)
	})
}

// TestAConnectionEndsAfterItsStreams: what was authenticated once is not so for ever.
func TestAConnectionEndsAfterItsStreams(t *testing.T) {
	withStreet(t, 8, func(t *testing.T, l *leader, s *street) {
		c := l.dialBy(tokenOf(pod("shop", "web-0")), s.from("10.0.0.1"))
		defer c.close()
		if got := status.Code(c.failure()); got != codes.DeadlineExceeded { // it says no hello
			t.Fatalf("code = %v", got)
		}
		synctest.Wait()
		if s.opened() != 1 || l.connections(connlimit.Unauthenticated) != 1 || l.connections(connlimit.Authenticated) != 0 {
			t.Errorf("%d connections are open, %d unauthenticated, %d authenticated", s.opened(), l.connections(connlimit.Unauthenticated), l.connections(connlimit.Authenticated))
		}
		time.Sleep(connlimit.Timeout)
		synctest.Wait()
		if s.opened() != 0 {
			t.Error("the connection is still open")
		}
	})
}

// TestConnectionsThatLeaveAreBounded: a pod does not collect them, and keeps nobody out.
func TestConnectionsThatLeaveAreBounded(t *testing.T) {
	const pending = 3
	withStreet(t, pending, func(t *testing.T, l *leader, s *street) {
		for range 2 * pending {
			c := l.dialBy(tokenOf(pod("shop", "web-0")), s.from("10.0.0.1"))
			defer c.close()
			c.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Leave{Leave: new(fleetpb.Leave)}}) // not a hello
			if got := status.Code(c.failure()); got != codes.InvalidArgument {
				t.Fatalf("code = %v", got)
			}
			synctest.Wait()
		}
		if n := s.opened(); n != pending {
			t.Errorf("%d connections are open, want %d", n, pending)
		}
		if c := s.raw(t, "10.0.0.1"); !isOpen(t, c) {
			t.Error("the next connection is refused")
		}
		time.Sleep(connlimit.Timeout)
		for _, b := range connlimit.Bounds() {
			if n := l.metBy(b); n != 0 {
				t.Errorf("bound %s was met %d times", b, n)
			}
		}
	})
}

// TestConnectionsAreBoundedByAddressAndInAll: those beyond are closed before a byte is sent
// to them, and no address keeps another out.
func TestConnectionsAreBoundedByAddressAndInAll(t *testing.T) {
	withStreet(t, 4, func(t *testing.T, l *leader, s *street) {
		all := map[string]net.Conn{}
		for _, tc := range []struct{ name, from, open string }{
			{"a1", "10.0.0.1", "a1"},
			{"a2", "::ffff:10.0.0.1", "a1 a2"}, // the same address
			{"a3", "10.0.0.1", "a1 a2"},        // it has half of the places
			{"b1", "10.0.0.2", "a1 a2 b1"},
			{"c1", "fd00::1", "a1 a2 b1 c1"},
			{"d1", "fd00::2", "a2 b1 c1 d1"}, // the oldest of the address with the most goes
			{"e1", "fd00::3", "a2 b1 c1 d1"}, // each has one
			{"a4", "10.0.0.1", "a2 b1 c1 d1"},
		} {
			c := s.raw(t, tc.from)
			defer func() { _ = c.Close() }()
			all[tc.name] = c
			var open []string
			for _, name := range slices.Sorted(maps.Keys(all)) {
				if isOpen(t, all[name]) {
					open = append(open, name)
				}
			}
			if got := strings.Join(open, " "); got != tc.open {
				t.Errorf("after %s: %s are open, want %s", tc.name, got, tc.open)
			}
		}
		if a, c := l.metBy(connlimit.BoundAddress), l.metBy(connlimit.BoundConnections); a != 1 || c != 3 {
			t.Errorf("the bound of an address was met %d times and that of all %d times, want 1 and 3", a, c)
		}
		if n := l.connections(connlimit.Unauthenticated); n != 4 {
			t.Errorf("%d connections are shown, want 4", n)
		}
	})
}

// TestTenThousandIdleConnections: from a hundred addresses, they take no more than the places
// there are, and let a sidecar through.
func TestTenThousandIdleConnections(t *testing.T) {
	withStreet(t, connlimit.ConnectionsIn(math.MaxInt64), func(t *testing.T, l *leader, s *street) {
		var all []net.Conn
		most, usual := 0, s.buffer
		s.buffer = 64
		for i := range 10_000 {
			c, err := s.from(fmt.Sprintf("10.0.%d.1", i%100))(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
			if i%500 == 499 {
				synctest.Wait()
				most = max(most, s.opened())
			}
		}
		if most != l.unauthenticated || l.connections(connlimit.Unauthenticated) != most {
			t.Errorf("%d connections are open, %d shown; want %d", most, l.connections(connlimit.Unauthenticated), l.unauthenticated)
		}
		s.buffer = usual
		id := pod("shop", "web-0")
		sidecar := l.dialBy(tokenOf(id), s.from("10.1.0.1"))
		defer sidecar.close()
		sidecar.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: helloOf(id, "1")}})
		if m := sidecar.recv(); m.GetWelcome() == nil {
			t.Errorf("got %v, want a welcome", m)
		}
		time.Sleep(connlimit.Timeout)
		synctest.Wait()
		if s.opened() != 1 {
			t.Errorf("%d connections are open later, want that of the sidecar", s.opened())
		}
		for _, c := range all {
			_ = c.Close()
		}
	})
}

// TestAStormOfSidecarsIsNotTurnedAway: they come from a few nodes, ten times as many as there
// are places for those without an authenticated stream, and an API server reviews 160 tokens a second.
func TestAStormOfSidecarsIsNotTurnedAway(t *testing.T) {
	const sidecars, nodes = 400, 4
	withStreet(t, sidecars/10, func(t *testing.T, l *leader, s *street) {
		all := make([]*sidecar, sidecars)
		for i := range all {
			uid := fmt.Sprint(i)
			all[i] = l.dialBy(podToken(uid), s.from(fmt.Sprintf("10.0.0.%d", i%nodes)))
			defer all[i].close()
			id := podauth.Identity{Namespace: "shop", Pod: "web-0", PodUID: uid}
			all[i].send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: helloOf(id, "1")}})
			synctest.Wait()
		}
		for i, c := range all {
			if m := c.recv(); m.GetWelcome() == nil {
				t.Errorf("sidecar %d got %v, want a welcome", i, m)
			}
		}
		for _, b := range connlimit.Bounds() {
			if n := l.metBy(b); n != 0 {
				t.Errorf("bound %s was met %d times", b, n)
			}
		}
		if n := l.connections(connlimit.Authenticated); n != sidecars {
			t.Errorf("%d connections are authenticated, want %d", n, sidecars)
		}
	}, func(c *Config) {
		c.Authenticator = podauth.NewReviewer(steady{200 * time.Millisecond}, knownPods{}, nil)
	})
}

// knownPods are those named web-0, whatever their UID.
type knownPods struct{}

func (knownPods) Knows(_ context.Context, id podauth.Identity) (bool, error) {
	return id.Namespace == "shop" && id.Pod == "web-0", nil
}

// podToken returns a JSON Web Token of the pod shop/web-0, which nobody signed.
func podToken(uid string) string {
	claims := fmt.Sprintf(`{"aud":["weir.dev"],"exp":%d,"kubernetes.io":{"namespace":"shop","pod":{"name":"web-0","uid":%q}}}`,
		time.Now().Add(time.Hour).Unix(), uid)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s"
}

// steady answers each review after a while: the token is bound to the pod that it claims.
type steady struct{ takes time.Duration }

func (s steady) Create(_ context.Context, r *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	time.Sleep(s.takes) // of a synctest bubble
	var claims struct {
		Bound struct {
			Pod struct{ UID string } `json:"pod"`
		} `json:"kubernetes.io"`
	}
	body, err := base64.RawURLEncoding.DecodeString(strings.Split(r.Spec.Token, ".")[1])
	err = errors.Join(err, json.Unmarshal(body, &claims))
	r.Status = authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: r.Spec.Audiences,
		User: authenticationv1.UserInfo{
			Username: "system:serviceaccount:shop:default",
			Extra: map[string]authenticationv1.ExtraValue{
				"authentication.kubernetes.io/pod-name": {"web-0"}, "authentication.kubernetes.io/pod-uid": {claims.Bound.Pod.UID},
			},
		},
	}
	return r, err
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

// TestATokenIsReadOnce, and nothing that lasts as long as the stream holds it.
func TestATokenIsReadOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		came  []string
		token string
		ok    bool
	}{
		"a token":    {[]string{"Bearer a.b.c"}, "a.b.c", true},
		"none":       {nil, "", false},
		"two":        {[]string{"Bearer a", "Bearer b"}, "", false},
		"a password": {[]string{"Basic a"}, "a", false},
		"an empty":   {[]string{"Bearer "}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			header := metadata.MD{"user-agent": {"weir"}}
			if tc.came != nil {
				header["authorization"] = tc.came
			}
			ctx, err := arrive(metadata.NewIncomingContext(t.Context(), header), &tap.Info{Header: header})
			if err != nil {
				t.Fatal(err)
			}
			if kept, _ := metadata.FromIncomingContext(ctx); len(kept["authorization"]) > 0 || len(kept) != 1 {
				t.Errorf("the stream keeps %v", kept)
			}
			if token, ok := arrivalOf(ctx).bearer(); ok != tc.ok || ok && token != tc.token {
				t.Errorf("token %q, %t, want %q, %t", token, ok, tc.token, tc.ok)
			}
			if token, ok := arrivalOf(ctx).bearer(); ok {
				t.Errorf("it is kept: %q", token)
			}
		})
	}
}

// A hookedGauge calls a function before it is set, once it is armed, and once.
type hookedGauge struct {
	prometheus.Gauge
	hook atomic.Pointer[func()]
}

// Set implements prometheus.Gauge.
func (g *hookedGauge) Set(value float64) {
	if hook := g.hook.Swap(nil); hook != nil {
		(*hook)()
	}
	g.Gauge.Set(value)
}

// TestAProcessThatComesBackAccounts, whatever of its two streams is seen to first.
func TestAProcessThatComesBackAccounts(t *testing.T) {
	for name, replaced := range map[string]bool{"its stream is replaced": true, "its stream has just ended": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLeader(t, &memoryTerms{}, publishing(several(2, 0, 1)...))
				gauge := &hookedGauge{Gauge: l.metrics.sessions}
				l.metrics.sessions = gauge
				l.start()
				defer l.end()
				id := pod("shop", "web-0")
				first := l.connect(id, "1")
				first.config()
				slowly := func() {
					l.Refresh("shop")
					time.Sleep(time.Second)
				}
				gauge.hook.Store(&slowly)
				if !replaced {
					first.close()
				}
				second := l.connect(id, "1")
				defer second.close()
				defer first.close()
				second.config()
				time.Sleep(2 * time.Second)
				synctest.Wait()
				all := l.present.Load().accounting
				all.mu.Lock()
				defer all.mu.Unlock()
				for _, policy := range []string{"p0", "p1"} {
					if n := len(all.byName[types.NamespacedName{Namespace: "shop", Name: policy}].holders); n != 1 {
						t.Errorf("%d account for %s, want the process", n, policy)
					}
				}
			})
		})
	}
}

// TestASessionIsServedAfterTheOneBefore was taken off the accounts.
func TestASessionIsServedAfterTheOneBefore(t *testing.T) {
	term := newBenchmarkTerm(t, publishing())
	id := pod("shop", "web-0")
	open := func() *session { return newSession(id, helloOf(id, "1"), func(error) {}) }
	before, next := open(), open()
	term.admit(before)
	term.serveBy(before, configOf(t, several(1, 0, 1)...), true)
	term.accounting.mu.Lock()
	admitted := make(chan struct{})
	go func() {
		defer close(admitted)
		term.admit(next)
	}()
	for term.sessions.of(id.PodUID) != next {
		runtime.Gosched()
	}
	if next.reporting.TryLock() {
		t.Error("it could be served")
	}
	term.accounting.mu.Unlock()
	<-admitted
	if !next.reporting.TryLock() {
		t.Error("it cannot be served afterwards")
	}
}
