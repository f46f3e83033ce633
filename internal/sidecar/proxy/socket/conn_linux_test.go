package socket

import (
	"bytes"
	"io"
	"net"
	"syscall"
	"testing"
)

// TestAConnReadsAndWrites, also more than the socket takes at once.
func TestAConnReadsAndWrites(t *testing.T) {
	_, ours, theirs := pair(t)
	go func() { _, _ = io.Copy(theirs, theirs) }()
	c := NewConn(ours)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	go func() { _, _ = c.Write(sent) }()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("other bytes came back, %v", err)
	}
}

// TestAConnIsLookedAtOnlyWhereItIsNotSilent.
func TestAConnIsLookedAtOnlyWhereItIsNotSilent(t *testing.T) {
	for name, tc := range map[string]struct {
		happen func(theirs *net.TCPConn)
		looked bool
	}{
		"it is silent":  {func(*net.TCPConn) {}, false},
		"it has spoken": {func(theirs *net.TCPConn) { _, _ = theirs.Write([]byte("x")) }, true},
		"it has ended":  {func(theirs *net.TCPConn) { _ = theirs.CloseWrite() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, ours, theirs := pair(t)
			c := NewConn(ours)
			tc.happen(theirs.(*net.TCPConn)) //nolint:forcetypeassert // it was accepted
			if tc.looked {
				arrived(t, ours)
			}
			raw, err := c.(syscall.Conn).SyscallConn() //nolint:forcetypeassert // it has a socket
			if err != nil {
				t.Fatal(err)
			}
			looked := false
			if err := raw.Read(func(uintptr) bool { looked = true; return true }); err != nil || looked != tc.looked {
				t.Errorf("looked %t, %v", looked, err)
			}
			if !tc.looked {
				return
			}
			if n, _ := c.Read(make([]byte, 2)); n > 1 || name == "it has spoken" && n != 1 {
				t.Errorf("%d bytes were left", n)
			}
		})
	}
}

func TestAConnWithoutASocketIsLeftAsItIs(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	if NewConn(ours) != ours {
		t.Error("it is another")
	}
}
