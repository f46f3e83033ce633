package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:], os.Getenv, os.Stderr); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(1)
	}
}
