package fleet_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
)

func replicas(addresses ...string) *fleetpb.ToHolder {
	return &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Replicas{Replicas: &fleetpb.Replicas{Addresses: addresses}}}
}

func goodbye() *fleetpb.ToHolder {
	return &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Goodbye{Goodbye: &fleetpb.Goodbye{Reason: "it hands over"}}}
}

// await has the next sidecar wait.
func (c *controller) await(t *testing.T) *session {
	t.Helper()
	s := c.accept(t)
	if m := s.next(t); m.GetAwait() == nil {
		t.Fatalf("the sidecar does not wait, it says %v", m)
	}
	if err := s.SendHeader(metadata.MD{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// lead has a session that waits be served in the term, and returns its hello.
func (s *session) lead(t *testing.T, term uint64) *fleetpb.Hello {
	t.Helper()
	s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Lead{Lead: &fleetpb.Lead{Term: term}}})
	hello := s.next(t).GetHello()
	if hello == nil {
		t.Fatal("the sidecar does not say hello to the next leader")
	}
	s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Welcome{Welcome: &fleetpb.Welcome{Term: term, ReportIntervalMillis: 20}}})
	return hello
}

// eventually waits until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// waiting has a client with a session at one controller wait at another.
func waiting(t *testing.T) (leader, other *controller, client *fleet.Client, session, waits *session) {
	t.Helper()
	leader, other = newControllers(t)
	client, _, _ = start(t, leader)
	session, _ = leader.welcome(t, 7)
	connected(t, client)
	session.say(t, replicas(other.address))
	waits = other.await(t)
	eventually(t, "the client does not wait", func() bool { return client.State().Waiting == 1 })
	return leader, other, client, session, waits
}

// TestTheNextLeaderIsReachedByTheStreamThatWaits: whether the one before says good-bye, is
// lost, or says nothing. No other stream is opened.
func TestTheNextLeaderIsReachedByTheStreamThatWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		end   func(t *testing.T, s *session)
		moved bool // a lease that failed is asked again
	}{
		"good-bye": {func(t *testing.T, s *session) { s.say(t, goodbye()); s.end <- errors.New("it stops") }, true},
		"nothing":  {func(*testing.T, *session) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			leader, other, client, session, waits := waiting(t)
			n, _ := client.Connections()
			tc.end(t, session)
			if hello := waits.lead(t, 8); hello.GetTerm() != 7 || hello.GetPodUid() != "uid" {
				t.Errorf("said %v", hello)
			}
			eventually(t, "the next leader is not followed", func() bool { s := client.State(); return s.Connected && s.Term == 8 })
			if got := client.Moved(t.Context(), n); got != tc.moved {
				t.Errorf("moved is %t, want %t", got, tc.moved)
			}
			expect(t, waits, (*fleetpb.FromHolder).GetReport)
			if len(leader.sessions) > 0 || len(other.sessions) > 0 || client.State().Waiting > 0 {
				t.Error("another stream was opened")
			}
			waits.say(t, replicas(leader.address)) // which does not lead any more
			leader.await(t)
		})
	}
}

// TestALeaderIsNotFollowedTwice: nor one whose term is over.
func TestALeaderIsNotFollowedTwice(t *testing.T) {
	for name, term := range map[string]uint64{"the same": 7, "an earlier one": 6} {
		t.Run(name, func(t *testing.T) {
			_, _, client, session, waits := waiting(t)
			waits.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Lead{Lead: &fleetpb.Lead{Term: term}}})
			if m := waits.next(t); m != nil {
				t.Errorf("the client says %v, want nothing", m)
			}
			for range 3 {
				expect(t, session, (*fleetpb.FromHolder).GetReport)
			}
			if s := client.State(); s.Streams != 1 || s.Term != 7 {
				t.Errorf("state is %+v", s)
			}
		})
	}
}

// TestTheClientWaitsAtTheNamedReplica: no more at a replica that is gone, and again at one that
// closed the stream.
func TestTheClientWaitsAtTheNamedReplica(t *testing.T) {
	_, other, client, session, waits := waiting(t)
	waits.end <- errors.New("it restarts")
	waits = other.await(t)
	session.say(t, replicas())
	if m := waits.next(t); m != nil {
		t.Errorf("the client says %v, want that it goes", m)
	}
	eventually(t, "the client still waits", func() bool { return client.State().Waiting == 0 })
}

// TestACrowdedControllerIsAskedSeldom: one that was reached and does not let the sidecar in has more to do than
// it can. While nobody listens, the sidecar finds the next leader soon.
func TestACrowdedControllerIsAskedSeldom(t *testing.T) {
	_, ca := newCertificate(t)
	for name, tc := range map[string]struct {
		dial        func() (net.Conn, error)
		least, most int64 // attempts in two minutes
	}{
		"nobody listens": {func() (net.Conn, error) { return nil, errors.New("connection refused") }, 120, 240},
		"it hangs up": {func() (net.Conn, error) {
			here, there := net.Pipe()
			_ = there.Close()
			return here, nil
		}, 14, 36},
		"it does not shake hands": {func() (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				for {
					if _, err := there.Read(make([]byte, 1024)); err != nil {
						return
					}
				}
			}()
			return here, nil
		}, 4, 7},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var attempts atomic.Int64
				client, err := fleet.New(fleet.Config{
					Address: "10.0.0.1:1", ServerName: serverName, CABundle: ca, Log: slog.New(slog.DiscardHandler),
					Dial: func(context.Context, string) (net.Conn, error) {
						attempts.Add(1)
						return tc.dial()
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				client.Run(ctx, &handler{})
				if n := attempts.Load(); n < tc.least || n > tc.most {
					t.Errorf("%d attempts, want %d to %d", n, tc.least, tc.most)
				}
			})
		})
	}
}

// TestAReplicaThatLetsNobodyWaitIsAskedSeldom: it has no room, and says so before a stream waits.
func TestAReplicaThatLetsNobodyWaitIsAskedSeldom(t *testing.T) {
	leader, other := newControllers(t)
	client, _, _ := start(t, leader)
	session, _ := leader.welcome(t, 7)
	connected(t, client)
	session.say(t, replicas(other.address))
	var pauses []time.Duration
	for last := time.Now(); len(pauses) < 4; {
		s := other.accept(t)
		pauses = append(pauses, time.Since(last))
		last = time.Now()
		if n := client.State().Waiting; n != 0 {
			t.Errorf("it waits at %d replicas", n)
		}
		s.end <- status.Error(codes.ResourceExhausted, "no room")
	}
	if last := pauses[3]; last < 400*time.Millisecond { // of 400 to 800 ms; each is at most 200 ms where pauses do not grow
		t.Errorf("the pauses are %s", pauses)
	}
}

// TestTheLeaderIsSoughtWhenNoReplicaLeads: the sidecar looks for it although it waits at one.
func TestTheLeaderIsSoughtWhenNoReplicaLeads(t *testing.T) {
	leader, _, client, session, _ := waiting(t)
	session.say(t, goodbye())
	session.end <- errors.New("it stops")
	leader.welcome(t, 8)
	eventually(t, "the leader is not followed", func() bool { s := client.State(); return s.Connected && s.Term == 8 })
}
