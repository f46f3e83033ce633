package coordinator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
)

// standBy starts a Coordinator that leads once elected is closed.
func standBy(t *testing.T, terms *memoryTerms, p *policies, change ...func(*Config)) (l *leader, elected chan struct{}) {
	t.Helper()
	elected = make(chan struct{})
	return lead(t, terms, p, append(change, func(c *Config) { c.Elected = elected })...), elected
}

// wait opens a stream that waits.
func (l *leader) wait(id podauth.Identity) *sidecar {
	l.t.Helper()
	s := l.dial(tokenOf(id))
	s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Await{Await: new(fleetpb.Await)}})
	synctest.Wait()
	return s
}

// reviewed counts how often it is asked.
type reviewed struct {
	podauth.Authenticator
	n *int
}

func (c reviewed) Authenticate(ctx context.Context, token string) (podauth.Identity, error) {
	*c.n++
	return c.Authenticator.Authenticate(ctx, token)
}

// TestASidecarWaitsForALeader: when it leads, the sidecar is served over the stream that it
// has, and its token is not reviewed again.
func TestASidecarWaitsForALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, reviews := limited("shop", 1, 10, limiter.Second), 0
		l, elected := standBy(t, &memoryTerms{}, publishing(p), func(c *Config) { c.Authenticator = reviewed{tokens{}, &reviews} })
		defer l.end()
		id := pod("shop", "web-0")
		s := l.wait(id)
		defer s.close()
		if _, err := s.stream.Header(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // far longer than a handshake, and than a session may be silent
		if got := l.waiting.len(); got != 1 {
			t.Fatalf("%d sidecars wait, want 1", got)
		}
		close(elected)
		began := time.Now()
		if m := s.recv(); m.GetLead().GetTerm() != 1 {
			t.Fatalf("got %v, want to hear that it leads in term 1", m)
		}
		s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: helloOf(id, "1")}})
		if m := s.recv(); m.GetWelcome().GetTerm() != 1 {
			t.Fatalf("got %v, want a welcome", m)
		}
		s.config()
		if took := time.Since(began); took > 0 || reviews != 1 {
			t.Errorf("it took %s and %d reviews, want none and 1", took, reviews)
		}
		if got := l.waiting.len(); got != 0 {
			t.Errorf("%d sidecars still wait", got)
		}
		time.Sleep(time.Second)
		if r := s.lease(p, p.Limits[0], want(3)); r.GetGranted() != 3 {
			t.Errorf("reply = %v, want 3 units", r)
		}
	})
}

func TestWhoDoesNotWaitOn(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(*leader, *sidecar)
		want codes.Code
	}{
		"another stream of the pod waits": {func(l *leader, s *sidecar) { s.t.Cleanup(l.wait(pod("shop", "web-0")).close) }, codes.Aborted},
		"the replica stops":               {func(l *leader, _ *sidecar) { l.stop() }, codes.Unavailable},
		"the sidecar goes":                {func(_ *leader, s *sidecar) { s.close() }, codes.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				terms := &memoryTerms{}
				l, _ := standBy(t, terms, publishing())
				s := l.wait(pod("shop", "web-0"))
				defer s.close()
				before := l.waiting.len()
				tc.end(l, s)
				if got := status.Code(s.failure()); got != tc.want {
					t.Errorf("code = %v, want %v", got, tc.want)
				}
				synctest.Wait()
				if got := l.waiting.len(); before != 1 || got > 1 || got == 1 && tc.want != codes.Aborted {
					t.Errorf("%d waited, then %d", before, got)
				}
				l.end()
				if terms.left.Term != 0 {
					t.Errorf("term %d began although nobody was elected", terms.left.Term)
				}
			})
		})
	}
}

// TestNobodyWaitsWithoutAToken: a stream that waits costs memory.
func TestNobodyWaitsWithoutAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := standBy(t, &memoryTerms{}, publishing())
		defer l.end()
		s := l.dial("made up")
		defer s.close()
		// The stream may be refused before this is sent.
		_ = s.stream.Send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Await{Await: new(fleetpb.Await)}})
		if got := status.Code(s.failure()); got != codes.Unauthenticated || l.waiting.len() != 0 {
			t.Errorf("code = %v and %d wait, want %v and none", got, l.waiting.len(), codes.Unauthenticated)
		}
	})
}

// TestWhoWaitedHasToSayHello: a stream that says nothing is let go of.
func TestWhoWaitedHasToSayHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, elected := standBy(t, &memoryTerms{}, publishing())
		defer l.end()
		s := l.wait(pod("shop", "web-0"))
		defer s.close()
		close(elected)
		began := time.Now()
		if got := status.Code(s.failure()); got != codes.DeadlineExceeded || time.Since(began) != handshakeTimeout {
			t.Errorf("code = %v after %s, want %v after %s", got, time.Since(began), codes.DeadlineExceeded, handshakeTimeout)
		}
	})
}
