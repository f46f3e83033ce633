package connlimit

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials"
)

// asking are credentials whose handshake reads a byte, computes until it may go on, and
// reads another one.
type asking struct {
	credentials.TransportCredentials
	computes chan struct{} // has a token for each that does
	goOn     chan struct{}
}

func (a asking) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if _, err := raw.Read(make([]byte, 1)); err != nil {
		return nil, nil, err
	}
	a.computes <- struct{}{}
	<-a.goOn
	if _, err := raw.Read(make([]byte, 1)); err != nil {
		return nil, nil, err
	}
	return raw, nil, nil
}

// A stage has handshakes of asking through a listener with some turns.
type stage struct {
	asking
	server credentials.TransportCredentials
}

func newStage(free int, within time.Duration) *stage {
	a := asking{computes: make(chan struct{}, 64), goOn: make(chan struct{})}
	l := &Listener{arrived: map[net.Conn]*Conn{}, turns: &turns{free: free}}
	return &stage{a, l.Credentials(a, within)}
}

// shake begins a handshake, and returns the peer and where its result comes.
func (s *stage) shake(t *testing.T) (peer net.Conn, result chan error) {
	t.Helper()
	server, peer := net.Pipe()
	t.Cleanup(func() { server.Close(); peer.Close() })
	result = make(chan error, 1)
	go func() {
		conn, _, err := s.server.ServerHandshake(server)
		if err == nil { // the connection waits for no turn any more
			_, err = conn.Read(make([]byte, 1))
		}
		result <- err
	}()
	return peer, result
}

func send(t *testing.T, peer net.Conn) {
	t.Helper()
	if _, err := peer.Write([]byte{1}); err != nil {
		t.Error(err)
	}
}

// TestHandshakesTakeTurns: no more compute at once than there are turns, and those that wait for
// their peer have none.
func TestHandshakesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(2, time.Minute)
		s.shake(t) // a peer that says nothing
		s.shake(t)
		const n = 5
		var peers [n]net.Conn
		var results [n]chan error
		for i := range n {
			peers[i], results[i] = s.shake(t)
			send(t, peers[i])
		}
		for range n {
			synctest.Wait()
			if got := len(s.computes); got > 2 || got == 0 {
				t.Fatalf("%d handshakes compute at once", got)
			}
			s.goOn <- struct{}{} // one goes on to wait for its peer, who is silent
			<-s.computes
		}
		for i := range n {
			send(t, peers[i])
			send(t, peers[i]) // after the handshake
			if err := <-results[i]; err != nil {
				t.Errorf("handshake %d: %v", i, err)
			}
		}
	})
}

// TestALateTurnIsNotUsed: the peer has given up by then.
func TestALateTurnIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(1, 5*time.Second)
		first, done := s.shake(t)
		send(t, first)
		<-s.computes
		late, result := s.shake(t)
		send(t, late)
		time.Sleep(5 * time.Second)
		s.goOn <- struct{}{}
		if err := <-result; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the late one ended with %v", err)
		}
		if len(s.computes) > 0 {
			t.Error("the late one was computed")
		}
		first.Close()
		if err := <-done; err == nil {
			t.Error("a handshake ended well without its peer")
		}
		last, done := s.shake(t)
		send(t, last)
		s.goOn <- struct{}{}
		send(t, last)
		send(t, last)
		if err := <-done; err != nil {
			t.Errorf("after handshakes that failed: %v", err)
		}
	})
}

// TestTheLatestHandshakeGoesFirst, after those that were answered.
func TestTheLatestHandshakeGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &turns{free: 1}
		until := time.Now().Add(5 * time.Second)
		if !q.take(false, until, nil) {
			t.Fatal("no turn although all are free")
		}
		order, ended := make(chan string, 8), make(chan struct{})
		for _, w := range []struct {
			name     string
			answered bool
			until    time.Time
			ended    chan struct{}
		}{
			{"old", false, until, nil},
			{"answered", true, until, nil},
			{"late", false, time.Now().Add(time.Second), nil},
			{"ended", false, until, ended},
			{"new", false, until, nil},
		} {
			go func() {
				if q.take(w.answered, w.until, w.ended) {
					order <- w.name
				} else {
					order <- "not " + w.name
				}
			}()
			synctest.Wait()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		close(ended)
		for _, want := range []string{"not late", "not ended", "answered", "new", "old"} {
			if got := <-order; got != want {
				t.Errorf("%q goes, want %q", got, want)
			}
			if synctest.Wait(); len(order) > 0 && want != "not late" {
				t.Error("two have a turn at once")
			}
			if want != "not late" {
				q.giveBack() // at first that which was free
			}
		}
		if q.free != 1 || len(q.waiting)+len(q.answered) != 0 {
			t.Errorf("in the end %d turns are free, %d wait", q.free, len(q.waiting)+len(q.answered))
		}
	})
}

// scripted are credentials whose handshake is f.
type scripted struct {
	credentials.TransportCredentials
	f func(raw net.Conn) error
}

func (s scripted) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return raw, nil, s.f(raw)
}

// TestOnlyAnsweredHandshakesGoFirst, and not for long: a peer that sends its handshake in pieces goes before no
// other.
func TestOnlyAnsweredHandshakesGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Listener{arrived: map[net.Conn]*Conn{}, turns: &turns{free: 1}}
		server, peer := net.Pipe()
		order, done := make(chan string, 2), make(chan struct{})
		go func() {
			defer close(done)
			_, _, _ = l.Credentials(scripted{f: func(raw net.Conn) error {
				for b := make([]byte, 1); ; {
					if _, err := raw.Read(b); err != nil {
						return err
					}
					order <- "handshake"
					if b[0] == 'a' { // which is answered
						if _, err := raw.Write(b); err != nil {
							return err
						}
					}
				}
			}}, time.Hour).ServerHandshake(server)
		}()
		until := time.Now().Add(time.Hour)
		for i, round := range []struct {
			sends byte
			first string
		}{{'x', "later"}, {'x', "later"}, {'a', "later"}, {'x', "handshake"}, {'x', "handshake"}, {'x', "handshake"}, {'x', "later"}} {
			l.turns.take(false, until, nil)
			if _, err := peer.Write([]byte{round.sends}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			go func() {
				l.turns.take(false, until, nil)
				order <- "later"
				l.turns.giveBack()
			}()
			synctest.Wait()
			l.turns.giveBack()
			synctest.Wait()
			if got := <-order; got != round.first {
				t.Errorf("message %d: the %s one goes first, want the %s one", i, got, round.first)
			}
			<-order
			if round.sends == 'a' {
				_, _ = peer.Read(make([]byte, 1))
			}
			synctest.Wait()
		}
		peer.Close()
		<-done
	})
}

// TestAHandshakeOfAnEndedConnectionWaitsNoLonger, so it takes no memory beyond its place.
func TestAHandshakeOfAnEndedConnectionWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, peer := net.Pipe()
		defer peer.Close()
		l := NewListener(nil, 2, NewRefusals(prometheus.NewCounterVec(prometheus.CounterOpts{Name: "refusals"}, []string{"bound"})), prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "connections"}, []string{"state"}))
		l.turns = &turns{}
		l.admit(server)
		v := l.arrived[server]
		result := make(chan error, 1)
		began := time.Now()
		go func() {
			_, _, err := l.Credentials(asking{}, time.Minute).ServerHandshake(server)
			result <- err
		}()
		send(t, peer)
		synctest.Wait()
		v.end()
		if err := <-result; err == nil || time.Since(began) > 0 {
			t.Errorf("it ended with %v after %s", err, time.Since(began))
		}
		if len(l.turns.waiting) > 0 {
			t.Error("it still waits for its turn")
		}
	})
}

// TestCredentialsAreKept by the copy that a server makes of them.
func TestCredentialsAreKept(t *testing.T) {
	l := &Listener{turns: &turns{free: 1}}
	of, ok := l.Credentials(cloned{}, time.Second).Clone().(transport)
	if !ok || of.listener != l || of.within != time.Second || of.TransportCredentials != (cloned{copied: true}) {
		t.Errorf("the copy is %+v", of)
	}
}

type cloned struct {
	credentials.TransportCredentials
	copied bool
}

func (cloned) Clone() credentials.TransportCredentials { return cloned{copied: true} }
