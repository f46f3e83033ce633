package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/weir-dev/weir/internal/heap"
)

// growth is what the heap grows by at most before garbage is collected, in percent of its live objects.
const growth = 100

func main() {
	if err := heap.Fit(growth, 0.8); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "controller: how much memory the container has is unknown:", err)
	}
	ctx := ctrl.SetupSignalHandler()
	go heap.Balance(ctx, growth)
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(1)
	}
}
