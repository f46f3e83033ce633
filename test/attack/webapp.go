package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// A web is an application over HTTP/1.1 and HTTP/2 without TLS. It counts what reaches it.
type web struct {
	server *http.Server
	slow   time.Duration // that /slow takes

	complete atomic.Int64 // requests whose bodies were read to their end
	last     atomic.Value // of them, its length as it was understood and as it was sent
}

// listenWeb starts one at an address.
func listenWeb(address string) (*web, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	a := &web{slow: 3 * time.Second}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			a.last.Store(fmt.Sprintf("length %d %q", r.ContentLength, r.Header.Values("Content-Length")))
			a.complete.Add(1)
		}
		fmt.Fprintln(w, "hello")
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(a.slow)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
		fmt.Fprintln(w, "hello")
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		part := make([]byte, 64<<10)
		for range 64 { // 4 MiB
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	})
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	a.server = &http.Server{Handler: mux, Protocols: &protocols, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = a.server.Serve(listener) }() // until it is closed
	return a, nil
}

func (a *web) close() { _ = a.server.Close() }

// copyMost copies up to a mebibyte.
func copyMost(to io.Writer, from io.Reader) (int64, error) {
	return io.Copy(to, io.LimitReader(from, 1<<20))
}
