package capture

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// newPod returns a pod with an app and a sidecar in it, and its node, which is at
// 10.1.0.1 for the pod and sees the pod at 10.1.0.2.
func newPod(t *testing.T) (node, pod *network) {
	t.Helper()
	node, pod = newNetwork(t), newNetwork(t)
	join(t, node, pod, 1)
	for port, name := range map[int]string{8080: "app", 9090: "other app", 15006: "sidecar", 15007: "sidecar's second"} {
		pod.serve(t, port, name)
	}
	node.serve(t, 8080, "node")
	return node, pod
}

func (n *network) capture(t *testing.T, redirects ...string) {
	t.Helper()
	var args []string
	for _, r := range redirects {
		args = append(args, "--redirect="+r)
	}
	if err := n.do(func() error { return Run(args, new(bytes.Buffer)) }); err != nil {
		t.Fatal(err)
	}
}

func TestCapture(t *testing.T) {
	node, pod := newPod(t)
	node.requireAnswers(t, map[string]string{"10.1.0.2:8080": "app", "[fd00:1::2]:8080": "app"})
	pod.capture(t, "8080:15006")

	t.Run("what comes to the pod goes to the sidecar", func(t *testing.T) {
		node.requireAnswers(t, map[string]string{"10.1.0.2:8080": "sidecar", "[fd00:1::2]:8080": "sidecar"})
	})
	t.Run("other ports are left alone", func(t *testing.T) {
		node.requireAnswers(t, map[string]string{
			"10.1.0.2:9090": "other app", "[fd00:1::2]:9090": "other app", "10.1.0.2:15006": "sidecar",
		})
	})
	t.Run("the sidecar reaches the app", func(t *testing.T) {
		pod.requireAnswers(t, map[string]string{
			"10.1.0.2:8080": "app", "[fd00:1::2]:8080": "app", "127.0.0.1:8080": "app", "[::1]:8080": "app",
		})
	})
	t.Run("what the pod asks of others goes to them", func(t *testing.T) {
		pod.requireAnswers(t, map[string]string{"10.1.0.1:8080": "node", "[fd00:1::1]:8080": "node"})
	})
}

// TestCaptureAgain: a container that runs a second time leaves what it was given
// the second time.
func TestCaptureAgain(t *testing.T) {
	node, pod := newPod(t)
	pod.capture(t, "8080:15006", "9090:15007")
	node.requireAnswers(t, map[string]string{"10.1.0.2:8080": "sidecar", "10.1.0.2:9090": "sidecar's second"})
	for range 2 {
		pod.capture(t, "8080:15007")
		node.requireAnswers(t, map[string]string{"10.1.0.2:8080": "sidecar's second", "10.1.0.2:9090": "other app"})
	}
	if err := pod.do(func() error {
		conn, err := nftables.New()
		if err != nil {
			return err
		}
		tables, err := conn.ListTables()
		if len(tables) != 1 || tables[0].Name != tableName || tables[0].Family != nftables.TableFamilyINet {
			t.Errorf("tables %v, want inet weir alone", tables)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestCaptureLeavesWhatPassesThrough: a pod that is a gateway forwards what is
// addressed to others.
func TestCaptureLeavesWhatPassesThrough(t *testing.T) {
	node, pod := newPod(t)
	beyond := newNetwork(t)
	join(t, pod, beyond, 2)
	beyond.serve(t, 8080, "beyond")
	if err := pod.do(func() error { // the file is that of the network of the thread
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
	}); err != nil {
		t.Fatal(err)
	}
	pod.capture(t, "8080:15006")
	node.ip(t, "route add 10.2.0.0/24 via 10.1.0.2")
	beyond.ip(t, "route add 10.1.0.0/24 via 10.2.0.1")
	node.requireAnswers(t, map[string]string{"10.2.0.2:8080": "beyond", "10.1.0.2:8080": "sidecar"})
}

// TestRefusalNamesTheCure drops the capability for one thread.
func TestRefusalNamesTheCure(t *testing.T) {
	pod := newNetwork(t)
	err := pod.do(func() error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var without [2]unix.CapUserData
		if err := unix.Capset(&header, &without[0]); err != nil {
			return err
		}
		return Apply([]Redirect{{App: 8080, Listen: 15006}})
	})
	if err == nil {
		t.Fatal("the network was changed without the capability")
	}
	for _, want := range []string{"NET_ADMIN", "config.weir.dev/capture: port"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}
