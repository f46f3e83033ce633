// Command sample is the app of config/samples/app and its clients: what a newcomer sets a
// limit on, and sees refused.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: sample serve     greet on port 8080
       sample load URL  get URL, RATE times a second, and print each second how that went`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "serve":
		return serve(ctx)
	case len(args) == 2 && args[0] == "load":
		return load(ctx, args[1], os.Getenv("RATE"), os.Stdout)
	default:
		return fmt.Errorf("%s", usage)
	}
}
