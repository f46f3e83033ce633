package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/weir-dev/weir/internal/testing/devcluster/backend"
)

// limited is the backend of applications, on port 9000: it works on THREADS requests at a time, each
// for as long as EACH says, and the others wait. On port 8080 it serves what it saw between two instants.
func limited(ctx context.Context) error {
	threads, err := strconv.Atoi(os.Getenv("THREADS"))
	if err != nil || threads <= 0 {
		return fmt.Errorf("THREADS is %q: set it to a number above 0", os.Getenv("THREADS"))
	}
	each, err := time.ParseDuration(os.Getenv("EACH"))
	if err != nil || each <= 0 {
		return fmt.Errorf("EACH is %q: set it to a duration above 0, such as 50ms", os.Getenv("EACH"))
	}
	b, err := backend.Listen(":9000", threads, each)
	if err != nil {
		return err
	}
	defer b.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/flow", func(w http.ResponseWriter, r *http.Request) {
		from, to, ok := interval(w, r)
		if !ok {
			return
		}
		served, p99 := b.Served(from, to, 0.99)
		answer(w, map[string]int64{
			"served": int64(served), "p99": p99.Milliseconds(), "peak": b.Peak(from, to), "inFlight": b.InFlight(),
		})
	})
	return listenHTTP(ctx, ":8080", mux)
}
