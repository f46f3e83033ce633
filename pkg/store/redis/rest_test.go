package redis_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// overHTTP returns a store on a bridge that is closed when the test ends.
func overHTTP(t testing.TB, b *redistest.Bridge, open func(redis.RESTOptions) (*redis.Store, error)) *redis.Store {
	t.Helper()
	s, err := open(redis.RESTOptions{URL: b.URL, Token: b.Token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// cut ends the connection in the middle of an answer.
func cut(w http.ResponseWriter, _ *http.Request, body []byte) {
	w.Header().Set("Content-Length", "1000000")
	_, _ = w.Write(body[:len(body)/2])
	panic(http.ErrAbortHandler)
}

// hang answers nothing before the client gives up.
func hang(_ http.ResponseWriter, r *http.Request, _ []byte) { <-r.Context().Done() }

// TestFailuresOverHTTP are outages whose text has nothing of what the server sent.
func TestFailuresOverHTTP(t *testing.T) {
	const sent = "bytes of the server"
	status := func(code int, body string) func(*redistest.Bridge) {
		return func(b *redistest.Bridge) {
			b.Instead(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://127.0.0.1:1/"+sent)
				w.WriteHeader(code)
				_, _ = w.Write([]byte(body))
			})
		}
	}
	for name, c := range map[string]struct {
		spoil func(*redistest.Bridge)
		word  string
	}{
		"another token":        {func(b *redistest.Bridge) { b.Token = "another" }, "it refuses the token"},
		"out of order":         {status(503, sent), "it is out of order (status 503)"},
		"a proxy's page":       {status(502, "<html>"+sent), "it is out of order (status 502)"},
		"a redirect":           {status(307, sent), "write the URL that it leads to"},
		"too many requests":    {status(429, `{"error": "`+sent+`"}`), "larger quota"},
		"another path":         {status(404, sent), "it answers with status 404"},
		"another API":          {status(200, `{"answer": "`+sent+`"}`), "as Redis over HTTP does"},
		"a page":               {status(200, "<html>"+sent), "as Redis over HTTP does"},
		"no base64":            {status(200, `{"result": "`+sent+`"}`), "as Redis over HTTP does"},
		"an endless answer":    {status(200, `{"result": "`+strings.Repeat("QQ==", 2<<20)+`"}`), "longer than"},
		"a used up quota":      {status(400, `{"error": "ERR max daily request limit exceeded. `+sent+`"}`), "quota of requests is used up"},
		"a token without EVAL": {status(400, `{"error": "NOPERM `+sent+`"}`), "rights"},
		"half an answer":       {func(b *redistest.Bridge) { b.Spoil(cut) }, "it closed the connection"},
		"a slow answer":        {func(b *redistest.Bridge) { b.Spoil(hang) }, "it did not answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := redistest.Start(t).StartBridge()
			s := overHTTP(t, b, redis.OpenREST)
			c.spoil(b)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if name != "a slow answer" {
				ctx = t.Context()
			}
			_, err := s.Apply(ctx, counterOf("a"), perWindow(1, limiter.Second), lease)
			wantUnavailable(t, err, c.word, b.URL)
			if plain := store.Plain(err).Error(); !strings.Contains(plain, c.word) || strings.Contains(plain, sent) {
				t.Errorf("a status would show %q", plain)
			}
			if strings.Contains(err.Error(), "AXnA_token") {
				t.Errorf("error %q shows the token", err)
			}
		})
	}
}

// TestALostAnswerIsNotAskedForAgain loses the answer to a decision, on a connection that
// was used before.
func TestALostAnswerIsNotAskedForAgain(t *testing.T) {
	for name, lose := range map[string]redistest.Spoiler{
		"no byte": func(http.ResponseWriter, *http.Request, []byte) { panic(http.ErrAbortHandler) },
		"half":    cut,
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			b := server.StartBridge()
			s := overHTTP(t, b, redis.OpenREST)
			apply(t, s, counterOf("a"), perWindow(1, limiter.Second), lease)
			server.Do("CONFIG", "RESETSTAT")
			b.Spoil(lose)
			_, err := s.Apply(t.Context(), counterOf("a"), perWindow(1, limiter.Second), lease)
			wantUnavailable(t, err)
			if n := calls(server, "evalsha") + calls(server, "eval"); n != 1 {
				t.Errorf("the server got the command %d times", n)
			}
			b.Spoil(nil)
			apply(t, s, counterOf("a"), perWindow(1, limiter.Second), lease)
		})
	}
}

func TestALostScriptCacheCostsNoErrorOverHTTP(t *testing.T) {
	server := redistest.Start(t)
	s := overHTTP(t, server.StartBridge(), redis.OpenREST)
	apply(t, s, counterOf("a"), perWindow(1, limiter.Second), lease)
	server.FlushScripts()
	server.Do("CONFIG", "RESETSTAT")
	for range 3 {
		apply(t, s, counterOf("a"), perWindow(1, limiter.Second), lease)
	}
	if sha, text := calls(server, "evalsha"), calls(server, "eval"); sha != 3 || text != 1 {
		t.Errorf("%d EVALSHA and %d EVAL for 3 decisions, want 3 and 1", sha, text)
	}
}

// TestWhatTravelsTogetherIsOneRequest counts those of a probe: what the server says of
// itself, and the partitions.
func TestWhatTravelsTogetherIsOneRequest(t *testing.T) {
	b := redistest.Start(t).StartBridge()
	s := overHTTP(t, b, redis.OpenREST)
	if err := s.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := b.Requests()
	if _, err := s.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := b.Requests() - before; n != 2 {
		t.Errorf("a probe is %d requests, want 2", n)
	}
}

func TestProbeGradesAService(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	b := server.StartBridge()
	of := func(open func(redis.RESTOptions) (*redis.Store, error)) store.Facts {
		t.Helper()
		f, err := overHTTP(t, b, open).Probe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if f.Lossless {
			t.Error("over HTTP a server is believed to lose nothing")
		}
		return f
	}
	f := of(redis.OpenREST)
	if g := f.Volatile.Guarantee; g.Grade != store.HardExceptSplitBrain || !strings.Contains(g.Reason, "over HTTP") {
		t.Errorf("alone: %+v", g)
	}
	if g := f.Durable.Guarantee; g.Grade != store.HardExceptSplitBrain || !strings.Contains(g.Reason, "reached directly") {
		t.Errorf("of durable counters: %+v", g)
	}
	server.Do("CONFIG", "SET", "maxmemory-policy", "volatile-random")
	if g := of(redis.OpenREST).Volatile.Guarantee; g.Grade != store.BestEffort || !strings.Contains(g.Reason, "volatile-random") {
		t.Errorf("with eviction: %+v", g)
	}
}

// TestAServiceThatHidesItsInstance is known by its leader, as far as it names one.
func TestAServiceThatHidesItsInstance(t *testing.T) {
	t.Parallel() // it waits for windows
	for name, c := range map[string]struct {
		change  func(*redistest.Server)
		noticed bool
	}{
		"nothing":         {func(*redistest.Server) {}, false},
		"another leader":  {func(s *redistest.Server) { s.Do("SET", "leader", "10.0.0.2") }, true},
		"a flush":         {func(s *redistest.Server) { s.Flush() }, true},
		"no leader named": {func(s *redistest.Server) { s.Do("DEL", "leader") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			server.Do("SET", "leader", "10.0.0.1")
			s := overHTTP(t, server.StartBridge(), redis.OpenService)
			p := perWindow(50, 4*limiter.Second)
			grant, res := limiter.Result{}, limiter.Result{Windows: limiter.Windows{N: -1}}
			for !res.Windows.SameWindows(grant.Windows) { // or the window ended meanwhile
				grant = untilGranted(t, s, counterOf("a"), p)
				c.change(server)
				res = apply(t, s, counterOf("a"), p, lease)
			}
			if noticed := res.Reason == limiter.Amnesia; noticed != c.noticed {
				t.Errorf("the window grants %d on, because of %v", res.Granted, res.Reason)
			}
		})
	}
}

func TestUpdateNeedsAConnection(t *testing.T) {
	s := overHTTP(t, redistest.Start(t).StartBridge(), redis.OpenREST)
	err := s.Update(t.Context(), counterOf("a"), func([]byte, limiter.Instant, limiter.Memory) ([]byte, limiter.Micros, error) {
		t.Error("the strategy was asked")
		return nil, 0, nil
	})
	var away *store.UnavailableError
	if err == nil || errors.As(err, &away) || !strings.Contains(err.Error(), "WATCH") {
		t.Errorf("got %v", err)
	}
}

func TestWrongRESTOptions(t *testing.T) {
	const right = "https://name.example.com"
	for name, o := range map[string]redis.RESTOptions{
		"no URL":              {Token: "t"},
		"an address":          {URL: "name.example.com:443", Token: "t"},
		"the URL of a server": {URL: "rediss://name.example.com:6379", Token: "t"},
		"no host":             {URL: "https:///path", Token: "t"},
		"a password":          {URL: "https://user:hidden@name.example.com", Token: "t"},
		"a token in it":       {URL: right + "?_token=hidden", Token: "t"},
		"no token":            {URL: right},
		"a token of two":      {URL: right, Token: "hidden\r\nX-Header: a"},
	} {
		s, err := redis.OpenREST(o)
		if err == nil {
			_ = s.Close()
			t.Errorf("%s is accepted", name)
		} else if strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: error %q shows a secret", name, err)
		}
	}
}

// lostAnswers has a bridge lose the answers to what it carries out, for a while.
func lostAnswers(b *redistest.Bridge) func() {
	spoilers := slices.Values([]redistest.Spoiler{cut, func(http.ResponseWriter, *http.Request, []byte) { panic(http.ErrAbortHandler) }})
	return func() {
		for lose := range spoilers {
			b.Spoil(lose)
			<-time.After(50 * time.Millisecond)
		}
		b.Spoil(nil)
	}
}
