// Command app is every program that the demo and the tests of whole clusters run in pods,
// but Weir itself: an application, the tally it reports to, the backend it works at, a source of
// load, a client that asks once, one that opens connections, and one that does nothing.
package main

import (
	"context"
	"fmt"
	"log"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// roles are what the first argument chooses from.
var roles = map[string]func(context.Context) error{
	"serve":   serve,
	"tally":   tally,
	"backend": limited,
	"load":    load,
	"fetch":   fetch,
	"dial":    dial,
	"idle":    idle,
}

// idle does nothing until it is signalled to stop.
func idle(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func main() {
	if len(os.Args) < 2 || roles[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "usage: app %s\n", strings.Join(slices.Sorted(maps.Keys(roles)), "|"))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := roles[os.Args[1]](ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}
