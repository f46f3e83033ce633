package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

// serve greets until ctx is done, and then answers what is in flight.
func serve(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	greet := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "hello from %s\n", host) })
	server := &http.Server{Addr: ":8080", Handler: greet, ReadHeaderTimeout: 5 * time.Second}
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
