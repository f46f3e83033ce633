package proxy_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"sync"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/proxy"
)

// buffers is a pool for the proxy we compare with.
type buffers struct{ sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.Pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 32<<10)
}
func (b *buffers) Put(p []byte) { b.Pool.Put(&p) }

// BenchmarkProxy sets a request through the sidecar's proxy beside one through
// the standard library's bare ReverseProxy, with pooled buffers, and one straight
// to the app.
func BenchmarkProxy(b *testing.B) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer app.Close()
	target, err := url.Parse(app.URL)
	if err != nil {
		b.Fatal(err)
	}
	bareTransport := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
	defer bareTransport.CloseIdleConnections()
	bare := &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:  bareTransport,
		BufferPool: new(buffers),
	}
	ours := proxy.New(proxy.Config{
		Target: target.Host, Pool: noPool{}, Decider: decider(admit), Metrics: metrics.New(noLimits{}), Log: slog.New(slog.DiscardHandler),
	})
	slots := pools.New(pools.Config{Holder: "uid/nonce", Mode: enforce.Enforce, Coordinators: newDivider()})
	defer slots.Close(b.Context())
	wide := fixed(100)
	if err := adopt(slots, &wide); err != nil {
		b.Fatal(err)
	}
	for slots.States()[0].Stats.Share == 0 {
		runtime.Gosched()
	}
	pooled := proxy.New(proxy.Config{
		Target: target.Host, Pool: slots, Decider: decider(admit), Metrics: metrics.New(noLimits{}), Log: slog.New(slog.DiscardHandler),
	})
	server := httptest.NewServer(bare)
	b.Run("bare", func(b *testing.B) { request1(b, server.URL) })
	server.Close()
	for name, p := range map[string]*proxy.Proxy{"sidecar": ours, "sidecar with a pool": pooled} {
		b.Run(name, func(b *testing.B) { request1(b, "http://"+serveProxy(b, p)) })
	}
	b.Run("direct", func(b *testing.B) { request1(b, app.URL) })
}

// request1 sends one request at a time over one connection.
func request1(b *testing.B, url string) {
	b.Helper()
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport}
	b.ReportAllocs()
	for b.Loop() {
		res, err := c.Get(url)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}
