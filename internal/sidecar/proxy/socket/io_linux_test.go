package socket

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lateness is how long what is to happen may take on a busy machine.
const lateness = 20 * time.Second

// pair returns an IO over a connection, and the other end of it.
func pair(t *testing.T) (s *IO, ours, theirs net.Conn) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(context.WithoutCancel(t.Context()), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if ours, err = new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	if theirs, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	for _, c := range []net.Conn{ours, theirs} {
		_ = c.SetDeadline(time.Now().Add(lateness))
	}
	s = new(IO)
	s.Use(ours)
	return s, ours, theirs
}

// arrived waits until something has come over a connection, or its peer has ended it.
func arrived(t *testing.T, c net.Conn) {
	t.Helper()
	raw := RawOf(c)
	_ = raw.Control(func(fd uintptr) {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(lateness.Milliseconds()))
			if n == 1 {
				return
			}
			if !errors.Is(err, unix.EINTR) {
				t.Fatalf("nothing has come: %v", err)
			}
		}
	})
}

// TestAllThatIsWrittenIsRead, however much it is and however slowly the other end takes it.
func TestAllThatIsWrittenIsRead(t *testing.T) {
	s, ours, theirs := pair(t)
	want := bytes.Repeat([]byte("0123456789"), 2_000_000)
	go func() {
		all, _ := io.ReadAll(theirs)
		_, _ = theirs.Write(all)
		_ = theirs.Close()
	}()
	if n, err := s.Write(want); n != len(want) || err != nil {
		t.Fatalf("wrote %d bytes of %d: %v", n, len(want), err)
	}
	if err := ours.(*net.TCPConn).CloseWrite(); err != nil { //nolint:forcetypeassert // it was dialled
		t.Fatal(err)
	}
	got, err := io.ReadAll(s)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}

// TestACallEnds at its deadline, and with its connection.
func TestACallEnds(t *testing.T) {
	calls := map[string]func(s *IO) error{
		"Read":  func(s *IO) error { _, err := s.Read(make([]byte, 1)); return err },
		"Ask":   func(s *IO) error { _, _, err := s.Ask([]byte("x"), make([]byte, 1)); return err },
		"Write": func(s *IO) error { _, err := s.Write(make([]byte, 64<<20)); return err },
	}
	ends := map[string]struct {
		end  func(ours, theirs net.Conn)
		want error
	}{
		"at a deadline that has passed": {func(ours, _ net.Conn) { _ = ours.SetDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		"at a deadline to come":         {func(ours, _ net.Conn) { _ = ours.SetDeadline(time.Now().Add(20 * time.Millisecond)) }, os.ErrDeadlineExceeded},
		"when it was closed":            {func(ours, _ net.Conn) { _ = ours.Close() }, net.ErrClosed},
		"when it is closed":             {func(ours, _ net.Conn) { go ours.Close() }, net.ErrClosed},
		"when it is reset": {func(_, theirs net.Conn) {
			_ = theirs.(*net.TCPConn).SetLinger(0) //nolint:forcetypeassert // it was accepted
			go theirs.Close()
		}, nil},
	}
	for call, do := range calls {
		for name, tc := range ends {
			t.Run(call+" ends "+name, func(t *testing.T) {
				s, ours, theirs := pair(t)
				tc.end(ours, theirs)
				if err := do(s); err == nil || tc.want != nil && !errors.Is(err, tc.want) {
					t.Errorf("got %v, want %v", err, tc.want)
				}
			})
		}
	}
}

// TestWritingAfterAResetIsAnError that has a name.
func TestWritingAfterAResetIsAnError(t *testing.T) {
	s, ours, theirs := pair(t)
	_ = theirs.(*net.TCPConn).SetLinger(0) //nolint:forcetypeassert // it was accepted
	_ = theirs.Close()
	arrived(t, ours)
	if _, err := s.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %v", err)
	}
}

// TestTryReadDoesNotWait.
func TestTryReadDoesNotWait(t *testing.T) {
	s, ours, theirs := pair(t)
	p := make([]byte, 4)
	if n, err := s.TryRead(p); n != 0 || err != nil {
		t.Errorf("before something has come: %d, %v", n, err)
	}
	if !s.Silent() {
		t.Error("it is not silent")
	}
	_, _ = theirs.Write([]byte("ab"))
	arrived(t, ours)
	if n, err := s.TryRead(p); string(p[:n]) != "ab" || err != nil {
		t.Errorf("got %q, %v", p[:n], err)
	}
	_, _ = theirs.Write([]byte("c"))
	arrived(t, ours)
	if s.Silent() {
		t.Error("it is silent though something has come")
	}
	_ = theirs.Close()
	arrived(t, ours)
	if n, err := s.TryRead(p); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %d, %v", n, err)
	}
	if s.Silent() {
		t.Error("it is silent though it has ended")
	}
}

// TestTryWriteDoesNotWait.
func TestTryWriteDoesNotWait(t *testing.T) {
	s, _, _ := pair(t)
	part := make([]byte, 8<<20)
	for {
		n, err := s.TryWrite(part)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// TestADeadlineLosesNothing: what was taken by then is known, and the rest may follow.
func TestADeadlineLosesNothing(t *testing.T) {
	s, ours, theirs := pair(t)
	sent := make([]byte, 32<<20) // is more than the kernel keeps
	for i := range sent {
		sent[i] = byte(i >> 12)
	}
	_ = ours.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
	n, err := s.Write(sent)
	if n == 0 || n == len(sent) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("wrote %d bytes, %v", n, err)
	}
	go func() {
		_ = ours.SetWriteDeadline(time.Now().Add(lateness))
		_, _ = s.Write(sent[n:])
		_ = ours.(*net.TCPConn).CloseWrite() //nolint:forcetypeassert // it was dialled
	}()
	if got, err := io.ReadAll(theirs); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("read %d bytes of %d, or others, %v", len(got), len(sent), err)
	}
}
