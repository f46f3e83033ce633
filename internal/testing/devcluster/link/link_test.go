package link_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/testing/devcluster/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo runs a server that returns every line until the test ends.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return listener.Addr().String()
}

// ask sends a line over a new connection and returns how long the echo took.
func ask(address string) (time.Duration, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	start := time.Now()
	if _, err := fmt.Fprintln(c, "hello"); err != nil {
		return 0, err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && line != "hello\n" {
		err = fmt.Errorf("got %q", line)
	}
	return time.Since(start), err
}

func TestLink(t *testing.T) {
	l, err := link.Open(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := ask(l.Address()); err != nil {
		t.Fatalf("over an open link: %v", err)
	}

	l.SetDelay(20 * time.Millisecond)
	if took, err := ask(l.Address()); err != nil || took < 40*time.Millisecond {
		t.Errorf("over a long link: %v after %s, want a round trip of at least 40ms", err, took)
	}
	l.SetDelay(0)

	kept, err := net.Dial("tcp", l.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if _, err := fmt.Fprintln(kept, "hello"); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(kept)
	if _, err := reader.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	l.Cut()
	if _, err := reader.ReadString('\n'); err == nil {
		t.Error("a connection outlived the cut")
	}
	if _, err := ask(l.Address()); err == nil {
		t.Error("a cut link carried a line")
	}
	l.Heal()
	if _, err := ask(l.Address()); err != nil {
		t.Errorf("over a healed link: %v", err)
	}
}
