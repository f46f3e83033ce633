package sidecar

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"time"
)

const waitUsage = `Waits until the sidecar is ready, so that the app beside it starts after it.

Usage:
  sidecar wait [--admin-address HOST:PORT] [--timeout TIME]
`

// waitPause is the time from one question to the next.
const waitPause = 50 * time.Millisecond

// wait returns when the sidecar at an admin address is ready. The error names what is
// in the way when it is not in time.
func wait(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("wait", flag.ContinueOnError)
	address := flags.String("admin-address", "127.0.0.1:15020", "")
	timeout := flags.Duration("timeout", time.Minute, "")
	if over, err := parsed(flags, args, waitUsage, out); over {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	pause := time.NewTicker(waitPause)
	defer pause.Stop()
	var obstacle error
	for {
		err := ready(ctx, *address)
		if err == nil {
			return nil
		}
		if obstacle == nil || ctx.Err() == nil { // the end of the time hides no answer
			obstacle = err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return fmt.Errorf("the sidecar at %s is not ready after %s: %w: its log says why", *address, *timeout, obstacle)
		}
	}
}

// ready asks once.
func ready(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close() // nothing in it matters
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", response.Status)
	}
	return nil
}
