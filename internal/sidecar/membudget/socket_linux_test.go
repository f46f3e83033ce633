package membudget

import (
	"io"
	"net"
	"path/filepath"
	"syscall"
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

// TestTheKernelKeepsLittleForAPeerOfASocketThatDoesNotRead.
func TestTheKernelKeepsLittleForAPeerOfASocketThatDoesNotRead(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := new(net.Dialer).DialContext(t.Context(), "unix", l.Addr().String())
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
	_ = accepted.SetWriteDeadline(time.Now().Add(time.Second / 2))
	if n, _ := io.Copy(accepted, zeros{}); n == 0 || n > 2*unsentBytes {
		t.Errorf("%d bytes were taken", n)
	}
}

// TestTheKernelKeepsMoreOfABody than of requests behind another one.
func TestTheKernelKeepsMoreOfABody(t *testing.T) {
	client, accepted := accept(t)
	fill := func() int {
		_ = client.SetWriteDeadline(time.Now().Add(time.Second / 2))
		_, _ = io.Copy(client, zeros{})
		return waiting(t, accepted, unix.SIOCINQ)
	}
	if kept := fill(); kept == 0 || kept > 2*fromClientBytes {
		t.Errorf("%d bytes are kept", kept)
	}
	if err := widen(accepted); err != nil {
		t.Fatal(err)
	}
	_ = accepted.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.CopyN(io.Discard, accepted, 2*fromBodyBytes); err != nil {
		t.Fatal(err)
	}
	if kept := fill(); kept <= 2*fromClientBytes || kept > 2*fromBodyBytes {
		t.Errorf("%d bytes of a body are kept", kept)
	}
}

// TestARoomyConnectionKeepsWhatIsTakenForIt: the kernel takes twice the size that is set.
func TestARoomyConnectionKeepsWhatIsTakenForIt(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	kept := map[bool]int{}
	for roomy, bound := range map[bool]func(string, string, syscall.RawConn) error{false: BoundApp, true: BoundRoomyApp} {
		dialer := net.Dialer{Control: bound}
		c, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		kept[roomy] = option(t, c, unix.SOL_SOCKET, unix.SO_RCVBUF)
	}
	if more := kept[true] - kept[false]; more != RoomyBytes {
		t.Errorf("it keeps %d more, want %d", more, RoomyBytes)
	}
}

// TestAWideConnectionKeepsWhatIsTakenForIt, until it is not wide any more.
func TestAWideConnectionKeepsWhatIsTakenForIt(t *testing.T) {
	_, accepted := accept(t)
	if err := widen(accepted); err != nil { // for a body
		t.Fatal(err)
	}
	before := option(t, accepted, unix.SOL_SOCKET, unix.SO_RCVBUF)
	for _, more := range []int{WideBytes, 0, WideBytes} {
		if err := WidenAccepted(accepted, more > 0); err != nil {
			t.Fatal(err)
		}
		if got := option(t, accepted, unix.SOL_SOCKET, unix.SO_RCVBUF) - before; got != more {
			t.Errorf("it keeps %d more, want %d", got, more)
		}
	}
	if window := option(t, accepted, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP); window != 1<<16-1 {
		t.Errorf("its window is %d at most", window)
	}
}

// accept returns both ends of a connection to a listener of BoundListener.
func accept(t *testing.T) (client, accepted net.Conn) {
	t.Helper()
	config := net.ListenConfig{Control: BoundListener}
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if accepted, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = accepted.Close() })
	return client, accepted
}

// option returns an option of a socket.
func option(t *testing.T, c net.Conn, level, name int) (n int) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { n, err = unix.GetsockoptInt(int(fd), level, name) }); err != nil {
		t.Fatal(err)
	}
	return n
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// queued returns how many bytes wait to be sent and to be acknowledged.
func queued(t *testing.T, c net.Conn) int { return waiting(t, c, unix.SIOCOUTQ) }

// waiting returns how many bytes wait in a queue of a socket.
func waiting(t *testing.T, c net.Conn, queue uint) (n int) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), queue) }); err != nil || n < 0 {
		t.Fatal(err)
	}
	return n
}
