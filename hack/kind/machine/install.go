package machine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Install makes a program available from the Debian package that holds it.
func Install(ctx context.Context, program, pack string) error {
	if _, err := exec.LookPath(program); err == nil {
		return nil
	}
	if os.Geteuid() != 0 {
		return &UnavailableError{
			Reason: program + " is not installed and only root may install it",
			Cure:   "run as root, or install the package " + pack,
		}
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return &UnavailableError{
			Reason: program + " is not installed and there is no apt-get to install it with",
			Cure:   "install the package that holds " + program,
		}
	}
	for _, args := range [][]string{
		{"update", "-qq"},
		{"install", "-y", "-qq", "--no-install-recommends", pack},
	} {
		command := exec.CommandContext(ctx, "apt-get", args...)
		// The run level keeps the package's own service from starting: the
		// engine is started here, with what this machine needs.
		command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w: %s", args[0], err, bytes.TrimSpace(out))
		}
	}
	return nil
}
