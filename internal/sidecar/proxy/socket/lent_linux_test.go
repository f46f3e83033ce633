package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// A desk lends one buffer.
type desk struct {
	buffer [4]byte
	lent   bool
	back   chan struct{} // one for each time that it comes back
}

func (d *desk) Lend() []byte {
	d.lent = true
	return d.buffer[:]
}

func (d *desk) TakeBack() {
	if d.lent {
		d.lent = false
		d.back <- struct{}{}
	}
}

// TestABufferIsLentOnlyWhileThereIsSomethingToRead.
func TestABufferIsLentOnlyWhileThereIsSomethingToRead(t *testing.T) {
	s, ours, theirs := pair(t)
	d := &desk{back: make(chan struct{}, 10)}
	go func() {
		<-d.back // the goroutine waits
		_, _ = theirs.Write([]byte("abcdef"))
	}()
	for _, want := range []string{"abcd", "ef"} { // the rest is there already
		if n, err := s.ReadLent(d); err != nil || string(d.buffer[:n]) != want || !d.lent {
			t.Errorf("read %q, %v, lent: %v, want %q", d.buffer[:n], err, d.lent, want)
		}
	}
	if len(d.back) > 0 {
		t.Error("the buffer was given back though there was something to read")
	}
	_ = ours.SetReadDeadline(time.Unix(1, 0))
	if n, err := s.ReadLent(d); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || d.lent {
		t.Errorf("read %d bytes, %v, lent: %v", n, err, d.lent)
	}
	_ = ours.SetReadDeadline(time.Now().Add(lateness))
	_ = theirs.Close()
	if n, err := s.ReadLent(d); n != 0 || !errors.Is(err, io.EOF) || d.lent {
		t.Errorf("read %d bytes at the end, %v, lent: %v", n, err, d.lent)
	}
}

// TestABufferIsLentToAConnectionWithoutASocket, which cannot wait without one.
func TestABufferIsLentToAConnectionWithoutASocket(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() {
		_, _ = theirs.Write([]byte("ab"))
		_ = theirs.Close()
	}()
	var s IO
	s.Use(ours)
	d := &desk{back: make(chan struct{}, 1)}
	if n, err := s.ReadLent(d); err != nil || string(d.buffer[:n]) != "ab" {
		t.Errorf("read %q, %v", d.buffer[:n], err)
	}
	if n, err := s.ReadLent(d); n != 0 || !errors.Is(err, io.EOF) || d.lent {
		t.Errorf("read %d bytes at the end, %v, lent: %v", n, err, d.lent)
	}
}
