// Command kubectl-weir is a plugin of kubectl, which runs it as "kubectl weir".
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/weir-dev/weir/internal/plugin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := plugin.Execute(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
