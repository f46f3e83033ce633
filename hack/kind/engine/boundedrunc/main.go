// Command boundedrunc is runc for a machine that lacks capabilities. It removes
// those that the machine does not hold from the request of a container or a process
// in it, and then becomes runc. The kernel would refuse them, and runc would refuse
// the container.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/weir-dev/weir/hack/kind/machine"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "boundedrunc:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if path := specification(args); path != "" {
		held, err := machine.Held()
		if err != nil {
			return err
		}
		if err := boundFile(path, held); err != nil {
			return err
		}
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		return err
	}
	return syscall.Exec(runc, append([]string{"runc"}, args...), os.Environ())
}
