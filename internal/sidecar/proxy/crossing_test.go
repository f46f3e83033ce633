package proxy_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// TestWhatBecomesOfARequestOverHTTP2IsReported to the guard of its pool.
func TestWhatBecomesOfARequestOverHTTP2IsReported(t *testing.T) {
	abort := func(begun bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if begun {
				_, _ = io.WriteString(w, "half")
				_ = http.NewResponseController(w).Flush()
			}
			panic(http.ErrAbortHandler)
		}
	}
	for name, tc := range map[string]struct {
		app    http.HandlerFunc // nil: none is there
		path   string
		leaves bool
		want   concurrency.Outcome
	}{
		"it is answered":                 {app: answer(200, "", "hello"), want: concurrency.Served},
		"the app fails":                  {app: answer(500, "", "oops"), want: concurrency.Served},
		"the app says that it is busy":   {app: answer(503, "", ""), want: concurrency.Dropped},
		"what is behind the app is late": {app: answer(504, "", ""), want: concurrency.Dropped},
		"its latency is to be ignored":   {app: answer(503, "", ""), path: "/ignored", want: concurrency.Ignored},
		"there is no app":                {want: concurrency.Dropped},
		"the app resets it":              {app: abort(false), want: concurrency.Dropped},
		"the app breaks off its answer":  {app: abort(true), want: concurrency.Dropped},
		"a stream of events breaks off": {app: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			abort(true)(w, r)
		}, want: concurrency.Ignored},
		"the answer is a stream of events": {app: answer(200, "Content-Type: text/event-stream; charset=utf-8", "data: 1\n\n"), want: concurrency.Ignored},
		"the client leaves": {app: func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, leaves: true, want: concurrency.Ignored},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			came, target := make(chan struct{}, rounds), "127.0.0.1:1"
			if tc.app != nil {
				target = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					came <- struct{}{}
					tc.app(w, r)
				}))
			}
			address, k := pooled(t, target, learning(), decider(admit), newDivider())
			c := client(t, true)
			for range rounds {
				ctx, leave := context.WithCancel(t.Context())
				if tc.leaves {
					go func() {
						<-came
						leave()
					}()
				}
				if res, err := c.Do(newRequest(t, http.MethodPost, "http://"+address+cmp.Or(tc.path, "/"), strings.NewReader("hi")).WithContext(ctx)); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
				leave()
			}
			if got := outcomeOf(t, k); got != tc.want {
				t.Errorf("the guard was sent %d, want %d", got, tc.want)
			}
		})
	}
}

// TestAFencedPodEndsItsStreams: what was not answered yet is a 503, an answer under way is reset,
// and what had not been forwarded is not.
func TestAFencedPodEndsItsStreams(t *testing.T) {
	came, reached := make(chan struct{}, 2), make(chan struct{}, 1)
	app := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/late":
			reached <- struct{}{}
			return
		case "/begun":
			_, _ = io.WriteString(w, "half of ")
			_ = http.NewResponseController(w).Flush()
		}
		came <- struct{}{}
		<-r.Context().Done()
	}))
	d, expired := newDivider(), make(chan struct{})
	address, k := pooled(t, app, fenced(), decider(func(r *http.Request) (enforce.Verdict, error) {
		if r.URL.Path == "/late" {
			<-expired
		}
		return admit(r)
	}), d)
	c := client(t, true)
	res, err := c.Do(newRequest(t, http.MethodGet, "http://"+address+"/begun", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	status := make(chan int, 2)
	for _, path := range []string{"/", "/late"} {
		go func() {
			res, err := c.Do(newRequest(t, http.MethodGet, "http://"+address+path, nil))
			if err != nil {
				t.Error(err)
				status <- 0
				return
			}
			res.Body.Close()
			status <- res.StatusCode
		}()
	}
	<-came
	<-came
	eventually(t, "not all have slots", func() bool { return k.States()[0].Stats.InFlight == 3 })
	d.away.Store(true)
	eventually(t, "the pod is not fenced", func() bool { return k.States()[0].Stats.Fenced })
	close(expired)
	for range 2 {
		if got := <-status; got != http.StatusServiceUnavailable {
			t.Errorf("what was not answered got %d", got)
		}
	}
	if body, err := io.ReadAll(res.Body); err == nil || string(body) != "half of " {
		t.Errorf("what was half answered got %q, %v", body, err)
	}
	eventually(t, "a slot is held", func() bool { return k.States()[0].Stats.InFlight == 0 })
	if s := k.States()[0].Stats; s.Aborted != 3 || len(reached) > 0 {
		t.Errorf("%d were ended, and %d reached the app late", s.Aborted, len(reached))
	}
}

// TestAStreamThatLeavesTheQueueGivesItsPlaceBack, and those of its connection go on meanwhile.
func TestAStreamThatLeavesTheQueueGivesItsPlaceBack(t *testing.T) {
	app := newGated()
	p := fixed(1)
	p.Queue = &policy.Queue{MaxLength: 1, MaxWait: 10 * limiter.Second}
	p.Exempt = []policy.Match{{Paths: []policy.PathMatch{{Type: policy.Exact, Value: "/healthz"}}}}
	address, k := pooled(t, serve(t, app), p, decider(admit), newDivider())
	c := client(t, true)
	ask := func(ctx context.Context, path string) error {
		res, err := c.Do(newRequest(t, http.MethodGet, "http://"+address+path, nil).WithContext(ctx))
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		return err
	}
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- ask(t.Context(), "/") }()
	<-app.came
	ctx, leave := context.WithCancel(t.Context())
	go func() { second <- ask(ctx, "/") }()
	queued := func(n int64) func() bool { return func() bool { return k.States()[0].Stats.Queued == n } }
	eventually(t, "nobody waits", queued(1))
	health := make(chan error, 1)
	go func() { health <- ask(t.Context(), "/healthz") }()
	<-app.came // though the other stream waits
	leave()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("a client that left got %v", err)
	}
	eventually(t, "a client that left still waits", queued(0))
	close(app.on)
	for _, done := range []chan error{first, health} {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no answer")
		}
	}
}
