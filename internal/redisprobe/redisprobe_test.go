package redisprobe

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/store"
)

func TestAnswersAreRememberedForAMoment(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	asked := map[string]int{}
	outage := errors.New("no route to host")
	p := newProber(clock, func(_ context.Context, address string) (store.Guarantee, error) {
		asked[address]++
		if address == "down:6379" {
			return store.Guarantee{}, outage
		}
		return store.Guarantee{Grade: store.BestEffort, Reason: "it evicts"}, nil
	})
	probe := func(address string, wantErr error) {
		t.Helper()
		got, err := p.Probe(t.Context(), address)
		if !errors.Is(err, wantErr) {
			t.Errorf("Probe(%s): error %v, want %v", address, err, wantErr)
		}
		want := v1alpha1.Guarantee{Grade: v1alpha1.BestEffortGuarantee, Reason: "it evicts"}
		if wantErr != nil {
			want = v1alpha1.Guarantee{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Probe(%s) (-want +got):\n%s", address, diff)
		}
	}
	for range 3 {
		probe("up:6379", nil)
		probe("down:6379", outage)
	}
	if diff := cmp.Diff(map[string]int{"up:6379": 1, "down:6379": 1}, asked); diff != "" {
		t.Errorf("asked while the answers stand (-want +got):\n%s", diff)
	}

	clock.SetTime(clock.Now().Add(freshFor))
	probe("up:6379", nil)
	if asked["up:6379"] != 2 {
		t.Errorf("asked %d times after the answer was stale, want 2", asked["up:6379"])
	}
	if len(p.answers) != 1 {
		t.Errorf("%d answers are kept, want only the fresh one", len(p.answers))
	}
}

func TestARealServer(t *testing.T) {
	server, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatalf("%v; run: make deps", err)
	}
	socket := filepath.Join(t.TempDir(), "redis.sock")
	start(t, server, socket)

	got, err := New().Probe(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.Guarantee{Grade: v1alpha1.HardGuarantee, Reason: hardReason}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Probe (-want +got):\n%s", diff)
	}
}

func TestNoServer(t *testing.T) {
	if _, err := New().Probe(t.Context(), filepath.Join(t.TempDir(), "nobody.sock")); err == nil {
		t.Error("a server that is not there gave a guarantee")
	}
}

// start runs a Redis on a socket until the test ends, and returns when it listens.
func start(t *testing.T, server, socket string) {
	t.Helper()
	cmd := exec.Command(server, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	deadline := time.Now().Add(10 * time.Second)
	for {
		connection, err := net.Dial("unix", socket)
		if err == nil {
			_ = connection.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("redis-server does not listen: %v", err)
		}
		<-time.After(10 * time.Millisecond)
	}
}
