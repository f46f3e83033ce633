// Command peers is what the sidecar's proxy is measured against: an app, and the
// standard library's ReverseProxy in front of it with pooled buffers and nothing else.
//
//	peers app LISTEN
//	peers bare LISTEN APP
package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
)

func main() {
	var h http.Handler
	switch {
	case len(os.Args) == 3 && os.Args[1] == "app":
		h = http.HandlerFunc(app)
	case len(os.Args) == 4 && os.Args[1] == "bare":
		h = bare(os.Args[3])
	default:
		fmt.Fprintln(os.Stderr, "usage: peers app LISTEN | peers bare LISTEN APP")
		os.Exit(2)
	}
	err := http.ListenAndServe(os.Args[2], h)
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func app(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, "hello")
}

func bare(target string) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: target}) },
		Transport:  &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
		BufferPool: new(buffers),
	}
}

// buffers lends the buffers that bodies are copied through.
type buffers struct{ pool sync.Pool }

const size = 32 << 10

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[size]byte); ok {
		return p[:]
	}
	return make([]byte, size)
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(p []byte) { b.pool.Put((*[size]byte)(p)) }
