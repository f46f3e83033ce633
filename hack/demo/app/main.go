// Command app is the application of the demo and the end-to-end tests. It reports every
// request that reached it to a tally, calls its backend, if it has one, and greets.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	tally, err := traffic.Report(os.Getenv("TALLY"), os.Getenv("POD_NAME"))
	if err != nil {
		return err
	}
	work := backend(os.Getenv("BACKEND"))
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if err := tally.Reached(time.Now(), r.Header.Get(traffic.MarkHeader)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if err := work(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		fmt.Fprintf(w, "hello from %s\n", os.Getenv("POD_NAME"))
	})
	server := &http.Server{Addr: os.Getenv("POD_IP") + ":8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	drained := make(chan error, 1)
	go func() {
		<-ctx.Done()
		drained <- server.Shutdown(context.WithoutCancel(ctx))
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-drained
}

// backend returns a function that does a request's work at the address; nothing is to
// be done without one.
func backend(address string) func(context.Context) error {
	if address == "" {
		return func(context.Context) error { return nil }
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024}}
	return func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := client.Do(r)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
}
