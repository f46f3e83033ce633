// Command peers is what the sidecar's proxy is measured against: an app, and the
// standard library's ReverseProxy in front of it with pooled buffers and nothing else.
//
//	peers app LISTEN
//	peers bare LISTEN APP
package main

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"

	"github.com/weir-dev/weir/test/bench/app"
)

func main() {
	var h http.Handler
	switch {
	case len(os.Args) == 3 && os.Args[1] == "app":
		h = http.HandlerFunc(app.Handle)
	case len(os.Args) == 4 && os.Args[1] == "bare":
		h = bare(os.Args[3])
	default:
		fmt.Fprintln(os.Stderr, "usage: peers app LISTEN | peers bare LISTEN APP")
		os.Exit(2)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Addr: os.Args[2], Handler: h, Protocols: protocols}
	err := server.ListenAndServe()
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// bare speaks to the app in the protocol of the client.
func bare(target string) http.Handler {
	pool := new(buffers)
	toward := func(http2 bool) http.Handler {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(!http2)
		protocols.SetUnencryptedHTTP2(http2)
		return &httputil.ReverseProxy{
			Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: target}) },
			Transport:  &http.Transport{Protocols: protocols, MaxIdleConnsPerHost: 256, DisableCompression: true},
			BufferPool: pool,
		}
	}
	http1, http2 := toward(false), toward(true)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 {
			http2.ServeHTTP(w, r)
			return
		}
		http1.ServeHTTP(w, r)
	})
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
