// Command sealed runs a command where no packet leaves this machine, and fails when one
// tried to. The command has a network of its own, with the loopback interface and a
// default route that ends here.
//
//	go run ./hack/sealed COMMAND [ARGUMENT ...]
//
// The status is the command's, or 1 when a packet tried to leave; its destinations are
// listed. It needs Linux and root: elsewhere it says so and runs the command as it is.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: sealed COMMAND [ARGUMENT ...]")
		os.Exit(2)
	}
	status, err := run(exec.Command(os.Args[1], os.Args[2:]...)) //nolint:noctx // it ends by itself, or by the signals it gets
	if err != nil {
		fmt.Fprintln(os.Stderr, "sealed:", err)
	}
	os.Exit(status)
}

// run runs a command to its end and returns the status to exit with. The error says
// what left the machine, or why the command did not run.
func run(c *exec.Cmd) (status int, err error) {
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	n, err := open()
	if errors.Is(err, errUnable) {
		fmt.Fprintf(os.Stderr, "sealed: %v: %s runs with the network of this machine\n", err, c.Args[0])
	} else if err != nil {
		return 1, err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM) // an interrupt of the terminal reaches the command by itself
	defer signal.Stop(signals)
	if err := c.Start(); err != nil {
		return 1, err
	}
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM {
				_ = c.Process.Signal(s)
			}
		}
	}()
	err = c.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return 1, err
	}
	status = c.ProcessState.ExitCode()
	if left := n.close(); len(left) > 0 {
		return max(status, 1), fmt.Errorf("packets tried to leave this machine: %s", left)
	}
	return status, nil
}
