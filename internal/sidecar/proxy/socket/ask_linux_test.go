package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// TestAQuestionIsAnswered, also where both are asked again and again over one connection, and the
// answer comes before its goroutine waits.
func TestAQuestionIsAnswered(t *testing.T) {
	s, _, theirs := pair(t)
	go func() { _, _ = io.Copy(theirs, theirs) }()
	p := make([]byte, 16)
	for range 1000 {
		written, came, err := s.Ask([]byte("question"), p)
		if written != len("question") || err != nil {
			t.Fatalf("wrote %d bytes, %v", written, err)
		}
		for came < written {
			n, err := s.Read(p[came:])
			if err != nil {
				t.Fatal(err)
			}
			came += n
		}
		if string(p[:came]) != "question" {
			t.Fatalf("got %q", p[:came])
		}
	}
}

// TestNothingIsAskedOverAConnectionThatIsNotSilent.
func TestNothingIsAskedOverAConnectionThatIsNotSilent(t *testing.T) {
	for name, end := range map[string]func(theirs *net.TCPConn){
		"it has spoken": func(theirs *net.TCPConn) { _, _ = theirs.Write([]byte("x")) },
		"it has ended":  func(theirs *net.TCPConn) { _ = theirs.CloseWrite() },
	} {
		t.Run(name, func(t *testing.T) {
			s, ours, theirs := pair(t)
			end(theirs.(*net.TCPConn)) //nolint:forcetypeassert // it was accepted
			arrived(t, ours)
			written, came, err := s.Ask([]byte("question"), make([]byte, 16))
			if written != 0 || came != 0 || !errors.Is(err, ErrSpoken) {
				t.Errorf("wrote %d, read %d: %v", written, came, err)
			}
			_ = ours.Close()
			if all, err := io.ReadAll(theirs); len(all) > 0 || err != nil {
				t.Errorf("the other end got %q, %v", all, err)
			}
		})
	}
}

// TestAQuestionThatIsNotAnsweredWasWritten.
func TestAQuestionThatIsNotAnsweredWasWritten(t *testing.T) {
	s, ours, theirs := pair(t)
	_ = ours.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	written, came, err := s.Ask([]byte("question"), make([]byte, 16))
	if written != len("question") || came != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("wrote %d, read %d: %v", written, came, err)
	}
	p := make([]byte, len("question"))
	if _, err := io.ReadFull(theirs, p); err != nil || string(p) != "question" {
		t.Errorf("the other end got %q, %v", p, err)
	}
}

// TestALargeQuestionIsNotWaitedFor: the peer may have to say something before it takes all.
func TestALargeQuestionIsNotWaitedFor(t *testing.T) {
	s, _, _ := pair(t)
	question := make([]byte, 64<<20)
	written, came, err := s.Ask(question, make([]byte, 16))
	if written == 0 || written == len(question) || came != 0 || err != nil {
		t.Errorf("wrote %d, read %d: %v", written, came, err)
	}
}

// TestAConnectionWithoutASocketReadsAndWritesItself.
func TestAConnectionWithoutASocketReadsAndWritesItself(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	go func() { _, _ = io.Copy(theirs, theirs) }()
	var s IO
	s.Use(ours)
	p := make([]byte, 16)
	if n, err := s.TryRead(p); n != 0 || err != nil {
		t.Errorf("TryRead: %d, %v", n, err)
	}
	if n, err := s.TryWrite(p); n != 0 || err != nil {
		t.Errorf("TryWrite: %d, %v", n, err)
	}
	written, came, err := s.Ask([]byte("ab"), p)
	if written != 2 || string(p[:came]) != "ab" || err != nil || !s.Silent() {
		t.Errorf("wrote %d, read %q: %v", written, p[:came], err)
	}
}
