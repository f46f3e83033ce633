package main

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestServicesAndTheClientRunApart for a time.
func TestServicesAndTheClientRunApart(t *testing.T) {
	on := func(pid int) (set unix.CPUSet) {
		t.Helper()
		if err := unix.SchedGetaffinity(pid, &set); err != nil {
			t.Fatal(err)
		}
		return set
	}
	all := on(0)
	if all.Count() < 2 {
		t.Skip("there is one processor")
	}
	sleep := exec.CommandContext(t.Context(), "sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleep.Wait() }()
	defer func() { _ = sleep.Process.Kill() }()
	pid := sleep.Process.Pid
	s := &services{all: []*service{{pids: []int{pid}}}}
	together, err := s.apart()
	if err != nil {
		t.Fatal(err)
	}
	services, client := on(pid), on(0)
	if services.Count() != 1 || client.Count() != all.Count()-1 || services == client {
		t.Errorf("apart, the services run on %v, and the client on %v of %v", services, client, all)
	}
	if err := together(); err != nil || on(pid) != all || on(0) != all {
		t.Errorf("together, the services run on %v, and the client on %v of %v: %v", on(pid), on(0), all, err)
	}
}
