package connlimit

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

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

func newStage(turns int, within time.Duration) *stage {
	a := asking{computes: make(chan struct{}, 64), goOn: make(chan struct{})}
	l := &Listener{arrived: map[net.Conn]*Conn{}, turns: make(chan struct{}, turns)}
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

// TestCredentialsAreKept by the copy that a server makes of them.
func TestCredentialsAreKept(t *testing.T) {
	l := &Listener{turns: make(chan struct{}, 1)}
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
