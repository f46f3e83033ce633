// Package app is what requests reach behind the proxies that are measured.
package app

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
)

// Paths of calls of gRPC. The app reads all of any other one, and answers it with one small message.
const (
	Echo  = "/bench.Bench/Echo"  // answers each message with the same, as it comes
	Down  = "/bench.Bench/Down"  // answers with Messages small ones
	Large = "/bench.Bench/Large" // answers with one of LargeBytes
)

const (
	// Messages is how many a call has that sends or receives many.
	Messages = 100
	// LargeBytes is the length of large bodies and messages.
	LargeBytes = 64 << 10

	prefixBytes = 5 // before a message of gRPC
)

// Admitted is a message by which Envoy's rate limit service lets a request through, with what
// gRPC writes before it.
const Admitted = "\x00\x00\x00\x00\x02\x08\x01"

// Message returns a message of n bytes, with what gRPC writes before it.
func Message(n int) []byte {
	m := make([]byte, prefixBytes+n)
	binary.BigEndian.PutUint32(m[1:], uint32(n))
	return m
}

var large = Message(LargeBytes)

// Handle answers a request of HTTP/1.1 when it has read all of it, and calls of gRPC by their paths.
func Handle(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 2 {
		w.Header().Set("Content-Type", "application/grpc")
		call(w, r)
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		return
	}
	read(r)
	w.Header().Set("Content-Type", "text/plain")
	if r.URL.Path == "/64k" {
		w.Header().Set("Content-Length", strconv.Itoa(LargeBytes))
		_, _ = w.Write(large[prefixBytes:])
		return
	}
	_, _ = io.WriteString(w, "hello")
}

func read(r *http.Request) {
	if r.ContentLength != 0 {
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

func call(w http.ResponseWriter, r *http.Request) {
	send := func(message []byte) {
		_, _ = w.Write(message)
		_ = http.NewResponseController(w).Flush()
	}
	switch r.URL.Path {
	case Echo:
		echo(r.Body, send)
		return
	case Down:
		read(r)
		for range Messages - 1 {
			send([]byte(Admitted))
		}
	}
	read(r)
	if r.URL.Path == Large {
		_, _ = w.Write(large)
		return
	}
	_, _ = io.WriteString(w, Admitted)
}

// echo sends each message that comes.
func echo(body io.Reader, send func(message []byte)) {
	in, message := bufio.NewReader(body), make([]byte, prefixBytes)
	for {
		message = message[:prefixBytes]
		if _, err := io.ReadFull(in, message); err != nil {
			if !errors.Is(err, io.EOF) {
				panic(http.ErrAbortHandler)
			}
			return
		}
		n := int(binary.BigEndian.Uint32(message[1:]))
		if n > LargeBytes {
			panic(http.ErrAbortHandler)
		}
		message = slices.Grow(message, n)[:prefixBytes+n]
		if _, err := io.ReadFull(in, message[prefixBytes:]); err != nil {
			panic(http.ErrAbortHandler)
		}
		send(message)
	}
}
