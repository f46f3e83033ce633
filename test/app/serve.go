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

// serve is the application. It reports every request to the TALLY, calls its BACKEND, if it
// has one, and greets. It is probed on ports of its own by TLS and gRPC. It listens at the POD_IP
// alone where pods share a machine's network.
func serve(ctx context.Context) error {
	report, err := traffic.Report(os.Getenv("TALLY"), os.Getenv("POD_NAME"))
	if err != nil {
		return fmt.Errorf("reach the tally: %w", err)
	}
	work := working(os.Getenv("BACKEND"))
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("/", asking(os.Getenv("CHECK"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := report.Reached(time.Now(), r.Header.Get(traffic.MarkHeader)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if err := work(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		fmt.Fprintf(w, "hello from %s\n", os.Getenv("POD_NAME"))
	})))
	host := os.Getenv("POD_IP")
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return listenHTTP(ctx, host+":8080", mux) })
	all.Go(func() error { return listenTLS(ctx, host+":8443", mux) })
	all.Go(func() error { return listenGRPC(ctx, host+":9090") })
	return all.Wait()
}

// working returns a function that does a request's work at the address; nothing is to
// be done without one.
func working(address string) func(context.Context) error {
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
