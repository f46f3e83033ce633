package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/weir-dev/weir/internal/heap"
)

func main() {
	if err := heap.Fit(100, 0.8); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "controller: how much memory the container has is unknown:", err)
	}
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(1)
	}
}
