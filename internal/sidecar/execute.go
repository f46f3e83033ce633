package sidecar

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/weir-dev/weir/internal/sidecar/capture"
)

// Execute does what the first argument names: capture, wait and leave end by themselves,
// and without any of them the process is a sidecar, see [Run].
func Execute(ctx context.Context, args []string, getenv func(string) string, out, errOut io.Writer) error {
	if len(args) == 0 {
		return Run(ctx, args, getenv, out, errOut)
	}
	switch args[0] {
	case "capture":
		return capture.Run(args[1:], out)
	case "wait":
		return wait(ctx, args[1:], out)
	case "leave":
		return leave(ctx, args[1:], out)
	default:
		return Run(ctx, args, getenv, out, errOut)
	}
}

// parsed reads the flags of a command that takes no other arguments. With --help it
// prints the usage to out, and the command is over.
func parsed(flags *flag.FlagSet, args []string, usage string, out io.Writer) (over bool, err error) {
	flags.SetOutput(io.Discard)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		_, err = io.WriteString(out, usage)
		return true, err
	case err != nil:
		return true, fmt.Errorf("%w: sidecar %s --help lists the flags", err, flags.Name())
	case flags.NArg() > 0:
		return true, fmt.Errorf("argument %q is not a flag: sidecar %s --help lists the flags", flags.Arg(0), flags.Name())
	}
	return false, nil
}
