package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
)

// serve is the application. It reports to the TALLY every request before it answers,
// and is probed on ports of its own by TLS and gRPC.
func serve(ctx context.Context) error {
	report, err := traffic.Report(os.Getenv("TALLY"), os.Getenv("POD_NAME"))
	if err != nil {
		return fmt.Errorf("reach the tally: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("/", asking(os.Getenv("CHECK"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := report.Reached(time.Now(), r.Header.Get(traffic.MarkHeader)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "hello from %s\n", os.Getenv("POD_NAME"))
	})))
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return listenHTTP(ctx, ":8080", mux) })
	all.Go(func() error { return listenTLS(ctx, ":8443", mux) })
	all.Go(func() error { return listenGRPC(ctx, ":9090") })
	return all.Wait()
}

// listenHTTP serves until ctx is done and the requests in flight are answered.
func listenHTTP(ctx context.Context, address string, h http.Handler) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Addr: address, Handler: h, Protocols: protocols, ReadHeaderTimeout: 5 * time.Second}
	return untilDone(ctx, server, server.ListenAndServe)
}

func untilDone(ctx context.Context, server *http.Server, listen func() error) error {
	drained := make(chan error, 1)
	go func() {
		<-ctx.Done()
		drained <- server.Shutdown(context.WithoutCancel(ctx))
	}()
	if err := listen(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-drained
}

// asking asks the sidecar about each request, as policy/limit, before next serves
// it, as an application does that is not proxied. With an empty name it asks
// nothing.
func asking(name string, next http.Handler) http.Handler {
	policy, limit, ok := strings.Cut(name, "/")
	if !ok {
		return next
	}
	question, err := json.Marshal(map[string]any{"policy": policy, "limit": limit, "key": "", "cost": 1})
	if err != nil {
		panic(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := http.Post("http://localhost:15010/v1/check", "application/json", bytes.NewReader(question)) //nolint:noctx // answered at once
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		var verdict struct{ Allowed bool }
		switch err := json.NewDecoder(answer.Body).Decode(&verdict); {
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadGateway)
		case !verdict.Allowed:
			http.Error(w, "over the limit", http.StatusTooManyRequests)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
