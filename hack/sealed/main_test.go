package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// asCommand makes the test's program dial the address that is its value.
const asCommand = "SEALED_TEST_DIAL"

func TestMain(m *testing.M) {
	if address := os.Getenv(asCommand); address != "" {
		network, address, _ := strings.Cut(address, " ")
		if c, err := net.DialTimeout(network, address, time.Second); err == nil {
			_, _ = c.Write([]byte("hello")) // a datagram leaves with this
			_ = c.Close()
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A packet to another machine fails the command, whatever the command makes of it. The
// addresses are those of the documentation; nothing of this leaves the test's network.
func TestAPacketThatLeavesFailsTheCommand(t *testing.T) {
	if n, err := open(); errors.Is(err, errUnable) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	} else {
		n.close()
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for address, leaves := range map[string]bool{
		"tcp 192.0.2.77:81":    true,
		"udp 198.51.100.1:53":  true,
		"tcp [2001:db8::1]:82": true,
		"tcp 127.99.0.1:1":     false,
		"udp [::1]:9":          false,
	} {
		if strings.Contains(address, "[") && !hasIPv6() {
			continue
		}
		c := exec.Command(self)
		c.Env = append(os.Environ(), asCommand+"="+address)
		status, err := run(c)
		if leaves && (status != 1 || err == nil || !strings.Contains(err.Error(), address)) {
			t.Errorf("%s: status %d, error %v; want 1 and the address", address, status, err)
		}
		if !leaves && (status != 0 || err != nil) {
			t.Errorf("%s: status %d, error %v; want neither", address, status, err)
		}
	}
}

func hasIPv6() bool {
	_, err := os.Stat("/proc/net/if_inet6")
	return err == nil
}

func TestTheStatusIsTheCommands(t *testing.T) {
	if status, err := run(exec.Command("sh", "-c", "exit 7")); status != 7 || err != nil {
		t.Errorf("status %d, error %v; want 7 and none", status, err)
	}
}
