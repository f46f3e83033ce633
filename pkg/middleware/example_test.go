package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"google.golang.org/grpc"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/middleware"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
	"github.com/weir-dev/weir/pkg/twotier"
)

// Two requests a day for each user. A store in memory serves one process; with package
// store/redis in its place all processes share the limit.
func ExampleHandler() {
	counters := memory.New(memory.Options{Clock: func() limiter.Instant { return noon }, First: true})
	daily, err := twotier.New(twotier.Config{
		Scope:   store.Scope{Namespace: "shop", Policy: "api", Limit: "daily"},
		Params:  limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: 2, Window: limiter.Day}}},
		Size:    twotier.Size{Batch: 1},
		MaxKeys: 10_000,
		Holders: 1,
	}, counters)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer daily.Close(context.Background())

	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	server := middleware.Handler(hello, middleware.Limit[*http.Request]{
		Name:    "daily",
		Limiter: daily,
		Request: func(_ context.Context, r *http.Request) (twotier.Request, bool) {
			return twotier.Request{Value: r.Header.Get("X-User"), Cost: 1}, r.URL.Path != "/healthz"
		},
	})

	for range 3 {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil)
		r.Header.Set("X-User", "ann")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("RateLimit"))
	}
	// Output:
	// 200 "daily";r=1;t=57600
	// 200 "daily";r=0;t=57600
	// 429 "daily";r=0;t=57600
}

// Each method of a service has a budget of its own.
func ExampleUnaryServerInterceptor() {
	var perMethod *twotier.Limiter // as in the example of Handler
	_ = grpc.NewServer(grpc.UnaryInterceptor(middleware.UnaryServerInterceptor(middleware.Limit[middleware.Call]{
		Name:    "methods",
		Limiter: perMethod,
		Request: func(_ context.Context, call middleware.Call) (twotier.Request, bool) {
			return twotier.Request{Value: call.Method, Cost: 1}, true
		},
	})))
}
