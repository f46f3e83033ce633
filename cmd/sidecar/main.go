// Command sidecar enforces rate limits in front of the app in its pod.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/weir-dev/weir/internal/heap"
	"github.com/weir-dev/weir/internal/processors"
	"github.com/weir-dev/weir/internal/sidecar"
)

// growth of the heap between collections, in percent. Twice what is usual costs about
// 4 MiB and collects half as often, which clients see in their slowest requests.
const growth = 200

// part of the container's memory that the heap may take. The kernel keeps up to a tenth of it
// for connections; see membudget.SizeIn for what is admitted to the heap.
const part = 0.65

func main() {
	if err := heap.Fit(growth, part); err != nil {
		fmt.Fprintln(os.Stderr, "sidecar: how much memory the container has is unknown:", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	processors.Fit(ctx)
	if err := sidecar.Execute(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "sidecar:", err)
		os.Exit(1)
	}
}
