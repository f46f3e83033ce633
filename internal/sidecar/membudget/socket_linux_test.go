package membudget

import (
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTheKernelKeepsLittleForAPeerThatDoesNotRead, nor of one that is not read from.
func TestTheKernelKeepsLittleForAPeerThatDoesNotRead(t *testing.T) {
	config := net.ListenConfig{Control: BoundListener}
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialer := net.Dialer{Control: BoundApp}
	client, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if err := BoundAccepted(accepted); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]net.Conn{"to a client": accepted, "to the app": client} {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second / 2))
		n, _ := io.Copy(c, zeros{})
		if kept := queued(t, c); kept > 64<<10 {
			t.Errorf("%s: %d bytes were taken, and %d are kept", name, n, kept)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// queued returns how many bytes wait to be sent and to be acknowledged.
func queued(t *testing.T, c net.Conn) (n int) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }); err != nil || n < 0 {
		t.Fatal(err)
	}
	return n
}
