package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/cgroup"
)

const (
	container = 128 << 20 // the memory of the container of a sidecar
	most      = container / 100 * 85
	patience  = 2 * time.Minute
)

// A program is a process of it, in front of an app of the test.
type program struct {
	ip      string
	group   *cgroup.Group // nil where none can be made
	process *exec.Cmd
	ended   chan struct{}
}

func (s *program) inbound() string { return net.JoinHostPort(s.ip, "15006") }

// build builds the program as images have it.
func build(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sidecar")
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", file, ".")
	command.Env = append(command.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// start runs the program in a container's memory until the test ends, with further arguments and
// environment. Where no cgroup can be made it has the runtime's goal alone.
func start(t *testing.T, file string, number int, args []string, env ...string) *program {
	t.Helper()
	over := make(chan struct{})
	behind := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { app(over, w, r) }))
	behind.Config.Protocols = new(http.Protocols)
	behind.Config.Protocols.SetHTTP1(true)
	behind.Config.Protocols.SetUnencryptedHTTP2(true)
	s := &program{ip: fmt.Sprintf("127.77.%d.%d", os.Getpid()%250, number+1), ended: make(chan struct{})}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(s.ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	behind.Listener.Close()
	behind.Listener = listener
	behind.Start()
	t.Cleanup(func() {
		close(over)
		behind.Close()
	})

	script, limit := "exec \"$@\"", ""
	if s.group, err = cgroup.New(fmt.Sprintf("weir-floods-%d-%d", os.Getpid(), number), container); err == nil {
		script = s.group.Enter() + "; " + script
	} else {
		limit = "GOMEMLIMIT=" + strconv.Itoa(container/100*65)
		t.Logf("no cgroup can be made (%v): resident memory is judged", err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	args = append([]string{"-c", script, "sh", file, "--inbound=15006:" + port}, args...)
	s.process = exec.CommandContext(t.Context(), "/bin/sh", args...)
	s.process.Env = append([]string{"WEIR_POD_NAMESPACE=shop", "WEIR_SANDBOX_IP=" + s.ip, limit}, env...)
	s.process.Stderr = os.Stderr
	s.process.Cancel = func() error { return s.process.Process.Signal(syscall.SIGKILL) }
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.process.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = s.process.Process.Kill()
		<-s.ended
		s.group.Remove()
	})
	until(t, "the sidecar is not ready", func() bool {
		_, err := s.get(t.Context(), "15020", "/readyz")
		return err == nil
	})
	return s
}

// get returns the answer of a port.
func (s *program) get(ctx context.Context, port, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(s.ip, port)+path, http.NoBody)
	if err != nil {
		return "", err
	}
	r.Close = true
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errors.New(res.Status)
	}
	return string(body), err
}

// peak returns the most memory that the sidecar had, and of what kind that is.
func (s *program) peak(t *testing.T) (bytes int64, of string) {
	t.Helper()
	if s.group != nil {
		bytes, err := s.group.Peak()
		if err != nil {
			t.Fatal(err)
		}
		return bytes, "memory of the cgroup"
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10, "resident memory"
}

// figure returns the value of a metric.
func (s *program) figure(t *testing.T, name string) float64 {
	t.Helper()
	text, err := s.get(t.Context(), "15020", "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}

func until(t *testing.T, complaint string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal(complaint)
		}
	}
}
