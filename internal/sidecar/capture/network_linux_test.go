package capture

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A network is a network namespace: what do runs sees nothing of the machine's.
type network struct {
	work chan func()
	path string
}

// holds reports whether this process has a capability; root in a container may not.
func holds(t *testing.T, capability int) bool {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
	return data[capability/32].Effective&(1<<(capability%32)) != 0
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	if os.Geteuid() != 0 || !holds(t, unix.CAP_SYS_ADMIN) || !holds(t, unix.CAP_NET_ADMIN) {
		t.Skip("needs root to make network namespaces: run it as root, for instance in a container with SYS_ADMIN and NET_ADMIN")
	}
	n := &network{work: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine, and its namespace with it
		err := unix.Unshare(unix.CLONE_NEWNET)
		n.path = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
		made <- err
		for do := range n.work {
			do()
		}
	}()
	t.Cleanup(func() { close(n.work) })
	if err := <-made; err != nil {
		t.Fatalf("make a network namespace: %v", err)
	}
	n.ip(t, "link set lo up")
	return n
}

// do runs f in the network and returns its error.
func (n *network) do(f func() error) error {
	done := make(chan error)
	n.work <- func() { done <- f() }
	return <-done
}

// ip runs the program ip in the network.
func (n *network) ip(t *testing.T, arguments string) {
	t.Helper()
	if err := n.do(func() error {
		out, err := exec.CommandContext(t.Context(), "ip", strings.Fields(arguments)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", arguments, err, out)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// join connects two networks by a cable, with an address of both families at
// either end: 10.n.0.1 and fd00:n::1 here, 10.n.0.2 and fd00:n::2 there.
func join(t *testing.T, here, there *network, number int) {
	t.Helper()
	device := fmt.Sprintf("eth%d", number)
	here.ip(t, fmt.Sprintf("link add %s type veth peer name %s netns %s", device, device, there.path))
	for i, n := range []*network{here, there} {
		n.ip(t, fmt.Sprintf("address add 10.%d.0.%d/24 dev %s", number, i+1, device))
		n.ip(t, fmt.Sprintf("address add fd00:%d::%d/64 dev %s nodad", number, i+1, device))
		n.ip(t, "link set "+device+" up")
	}
}

// serve answers connections to the port, of both families, with a name.
func (n *network) serve(t *testing.T, port int, name string) {
	t.Helper()
	var listener net.Listener
	if err := n.do(func() (err error) {
		listener, err = net.Listen("tcp", fmt.Sprintf(":%d", port))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = listener.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, name)
			_ = conn.Close()
		}
	}()
}

// ask returns the name of the server that answers at the address, or why none does.
func (n *network) ask(address string) string {
	var name []byte
	if err := n.do(func() error {
		conn, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			return err
		}
		defer conn.Close()
		name, err = io.ReadAll(conn)
		return err
	}); err != nil {
		return err.Error()
	}
	return string(name)
}

// requireAnswers asks at each address and compares the names of the servers that
// answer.
func (n *network) requireAnswers(t *testing.T, want map[string]string) {
	t.Helper()
	for address, name := range want {
		if got := n.ask(address); got != name {
			t.Errorf("%s answers at %s, want %s", got, address, name)
		}
	}
}
