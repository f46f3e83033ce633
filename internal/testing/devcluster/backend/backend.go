package backend

import (
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// A Backend is a running server. Its methods are safe for concurrent use.
type Backend struct {
	listener net.Listener
	server   *http.Server
	threads  chan struct{}
	service  atomic.Int64 // nanoseconds
	gauge    gauge
	latency  latencies
}

// Start serves on a free port of this machine with the given number of threads. Each
// takes the service time for a request.
func Start(threads int, service time.Duration) (*Backend, error) {
	return Listen("127.0.0.1:0", threads, service)
}

// Listen is Start at an address, host:port.
func Listen(address string, threads int, service time.Duration) (*Backend, error) {
	listener, err := net.Listen("tcp", address) //nolint:noctx // returns at once
	if err != nil {
		return nil, err
	}
	b := &Backend{listener: listener, threads: make(chan struct{}, threads)}
	b.SetService(service)
	b.server = &http.Server{Handler: b, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = b.server.Serve(listener) }() // until Close
	return b, nil
}

// Address returns host:port.
func (b *Backend) Address() string { return b.listener.Addr().String() }

// SetService changes how long a request takes once a thread is free. Requests that
// are worked on take what they would have.
func (b *Backend) SetService(d time.Duration) { b.service.Store(int64(d)) }

// Service returns how long a request takes once a thread is free.
func (b *Backend) Service() time.Duration { return time.Duration(b.service.Load()) }

// Close ends all requests.
func (b *Backend) Close() { _ = b.server.Close() }

// ServeHTTP works on a request as soon as a thread is free. A request that its
// sender gave up leaves the queue; once a thread works on it, it is worked on to the
// end.
func (b *Backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	b.gauge.add(arrived, 1)
	defer func() { b.gauge.add(time.Now(), -1) }()
	select {
	case b.threads <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	busy := time.NewTimer(time.Duration(b.service.Load()))
	<-busy.C
	<-b.threads
	b.latency.add(arrived, time.Since(arrived))
	w.WriteHeader(http.StatusOK)
}

// InFlight returns how many requests are here now, waiting or worked on.
func (b *Backend) InFlight() int64 { return b.gauge.now() }

// Peak returns the most requests that were here at any instant from one time to
// before another, both taken as multiples of 100 ms.
func (b *Backend) Peak(from, to time.Time) int64 { return b.gauge.peak(from, to) }

// Served returns how many of the requests that arrived from one time to before
// another were finished, and how long the given part of them, from 0 to 1, took at
// most.
func (b *Backend) Served(from, to time.Time, part float64) (n int, took time.Duration) {
	return b.latency.of(from, to, part)
}
