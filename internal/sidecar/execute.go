package sidecar

import (
	"context"
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
