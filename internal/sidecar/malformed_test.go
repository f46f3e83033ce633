package sidecar

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/proxy"
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
	"github.com/weir-dev/weir/internal/sidecar/proxy/framing/framingtest"
)

// malformedRequests is how many streams that no strict parser reads to their end are
// sent at least.
const malformedRequests = 2000

// TestNothingMalformedReachesTheApp sends streams of requests through a sidecar's port
// to an app that speaks no HTTP but what RFC 9112 prints. Both ends are plain sockets.
func TestNothingMalformedReachesTheApp(t *testing.T) {
	const seed = 9112 // fixed: the set is the same in every run
	random := rand.New(rand.NewPCG(seed, 0))
	streams := framingtest.Known()
	for malformed := 0; malformed < malformedRequests; malformed++ {
		stream := framingtest.Mutant(random)
		if _, v := framingtest.ReadAll([]byte(stream)); v == framingtest.Complete {
			malformed--
		}
		streams = append(streams, stream)
	}
	var tally strictTally
	work := make(chan string)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for stream := range work {
				tryStream(t, stream, &tally)
			}
		})
	}
	for _, stream := range streams {
		work <- stream
	}
	close(work)
	workers.Wait()
	t.Logf("%d streams, %d of them malformed: %d requests forwarded, %d refused", len(streams), tally.malformed.Load(), tally.forwarded.Load(), tally.refused.Load())
	if n := tally.malformed.Load(); n < malformedRequests {
		t.Errorf("only %d streams were malformed", n)
	}
}

// TestMalformedRequestsAreCounted once each, wherever that is found.
func TestMalformedRequestsAreCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		stream string
		want   float64
	}{
		"a head":           {"GET / HTTP/1.1\nHost: a\r\n\r\n", 1},
		"a chunk":          {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 1},
		"a target":         {"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 1},
		"an unusual query": {"GET /caf\xc3\xa9?\"<> HTTP/1.1\r\nHost: a\r\n\r\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			app := strictApp(t)
			defer app.Close()
			m := metrics.New(new(process))
			_, address := inFrontOfPooled(t, app.Address(), unlimited{}, m)
			sendStream(t, address, tc.stream, 1, framingtest.Complete)
			if got := testutil.ToFloat64(m.Malformed); got != tc.want {
				t.Errorf("%v are counted, want %v", got, tc.want)
			}
		})
	}
}

// TestAMalformedRequestSparesTheOthersOfItsConnection where streams share it: over HTTP/2.
func TestAMalformedRequestSparesTheOthersOfItsConnection(t *testing.T) {
	overBoth(t, func(t *testing.T, c *http.Client) {
		_, address := inFrontOf(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for i, path := range []string{"/", "/a\\b", "/"} {
			var reused bool
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }})
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.URL.Opaque = path
			res, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if refused := res.StatusCode == http.StatusBadRequest; refused != (i == 1) {
				t.Errorf("%q is answered with %s", path, res.Status)
			}
			if ofOne := i == 1 || i == 2 && res.ProtoMajor == 2; reused != ofOne {
				t.Errorf("request %d over %s reuses the connection: %t", i, res.Proto, reused)
			}
		}
	})
}

// FuzzStream looks for a stream of requests that brings more requests to the app, or
// others, than a strict parser reads.
func FuzzStream(f *testing.F) {
	for i, stream := range framingtest.Known() {
		if i%60 == 0 && len(stream) < 1000 {
			f.Add(stream)
		}
	}
	f.Fuzz(func(t *testing.T, stream string) {
		if len(stream) < maxHeader {
			tryStream(t, stream, new(strictTally))
		}
	})
}

type strictTally struct{ malformed, forwarded, refused atomic.Int64 }

// tryStream sends one stream through a sidecar of its own.
func tryStream(t *testing.T, stream string, tally *strictTally) {
	t.Helper()
	app := strictApp(t)
	var counted, panics atomic.Int64
	m := metrics.New(new(process))
	p := proxy.New(proxy.Config{Target: app.Address(), Pool: unlimited{}, Metrics: m, Log: slog.New(slog.DiscardHandler), Decider: counting{&counted}})
	s, err := listenInbound(t.Context(), "127.0.0.1:0", p, watched{p, &panics}, membudget.New(1<<40).Port(false))
	if err != nil {
		t.Error(err)
		return
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.serve() })

	all, verdict := framingtest.ReadAll([]byte(stream))
	answers := sendStream(t, s.listener.Addr().String(), stream, len(all), verdict)
	s.drain(t.Context())
	serving.Wait()
	app.Close()
	seen := app.Take()

	if verdict != framingtest.Complete {
		tally.malformed.Add(1)
	}
	tally.forwarded.Add(int64(len(seen.Requests)))
	tally.refused.Add(int64(answers.refused))
	complain := func(what string) {
		t.Errorf("%s\nstream: %.500q\nread strictly: %d requests, verdict %d\nthe app read %d: %.300q\ncounted %d", what, stream, len(all), verdict, len(seen.Requests), targets(seen.Requests), counted.Load())
	}
	switch {
	case panics.Load() > 0:
		complain("a handler panicked")
	case answers.stuck:
		complain("the sidecar neither answered nor closed")
	case seen.Broken != "":
		complain("the app was sent what is malformed: " + seen.Broken)
	case len(seen.Requests) > len(all):
		complain("more requests reached the app than there are")
	case int(counted.Load()) < len(seen.Requests):
		complain("requests were forwarded that were not counted")
	case answers.answered > len(seen.Requests):
		complain("there are more answers than requests")
	case verdict == framingtest.Complete && !refusedOnPurpose(all) && (len(seen.Requests) != len(all) || int(counted.Load()) != len(all)):
		complain("well-formed requests were not forwarded, each once")
	}
	for i, got := range seen.Requests {
		if i < len(all) && !got.IsForwarded(&all[i]) {
			complain("the app was sent another request")
		}
	}
}

// refusedOnPurpose reports whether there is one among the requests that is well-formed
// and refused all the same.
func refusedOnPurpose(all []framingtest.Message) bool {
	for i := range all {
		m := &all[i]
		expect := strings.Join(m.Values("Expect"), ",")
		if m.Method == http.MethodConnect || m.Method == "PRI" || m.HeadBytes >= maxHeader || m.TrailerBytes > 4000 || m.ChunkLineBytes > 4000 || expect != "" && !strings.EqualFold(expect, "100-continue") {
			return true
		}
	}
	return false
}

func targets(requests []framingtest.Message) (all []string) {
	for i := range requests {
		all = append(all, requests[i].Target)
	}
	return all
}

func strictApp(t *testing.T) *framingtest.App {
	t.Helper()
	app, err := framingtest.Listen()
	if err != nil {
		t.Fatal(err)
	}
	return app
}

type streamAnswers struct {
	answered, refused int  // by the app and by us
	stuck             bool // a deadline passed
}

// sendStream sends a stream, reads answers until there are as many as requests, or until
// the connection is closed, and closes it.
func sendStream(t *testing.T, address, stream string, requests int, verdict framingtest.Verdict) (a streamAnswers) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Error(err)
		return a
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(headerTimeout - time.Second))
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() { _, _ = io.WriteString(conn, stream) }) // what is refused need not be taken
	reader := bufio.NewReader(conn)
	for {
		if a.answered == requests && verdict != framingtest.Malformed {
			writing.Wait()
			_ = conn.(*net.TCPConn).CloseWrite()
		}
		res, err := http.ReadResponse(reader, nil)
		if err != nil {
			a.stuck = errors.Is(err, os.ErrDeadlineExceeded)
			return a
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		switch {
		case res.StatusCode == http.StatusNoContent:
			a.answered++
		case res.StatusCode >= http.StatusOK:
			a.refused++
		}
	}
}

// watched counts panics but for those that break a request off.
type watched struct {
	exchange.Handler
	panics *atomic.Int64
}

func (w watched) Enter(rw http.ResponseWriter, r *http.Request) exchange.Exchange {
	defer func() {
		if reason := recover(); reason != nil {
			if reason != http.ErrAbortHandler { //nolint:errorlint // what was panicked with
				w.panics.Add(1)
			}
			panic(reason)
		}
	}()
	return w.Handler.Enter(rw, r)
}

// unlimited is a pool without a limit, and counting a decider that admits and counts.
type unlimited struct{}

func (unlimited) Acquire(*http.Request) (pools.Slot, *pools.Refusal) { return pools.Slot{}, nil }

type counting struct{ n *atomic.Int64 }

func (c counting) Decide(context.Context, *http.Request) (enforce.Verdict, error) {
	c.n.Add(1)
	return enforce.Verdict{Allowed: true}, nil
}
