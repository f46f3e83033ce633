package rest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/redis/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dial returns a client of Redis over HTTP.
func dial(t testing.TB, o rest.Options) *goredis.Client {
	t.Helper()
	way, err := rest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	c := goredis.NewClient(&goredis.Options{Dialer: way.Dial, Protocol: 2, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close(); way.Close() })
	return c
}

// TestRepliesHaveTheTypesOfRedis compares what scripts return with what they return to a
// client that is connected.
func TestRepliesHaveTheTypesOfRedis(t *testing.T) {
	server := redistest.Start(t)
	b := server.StartBridge()
	direct, over := server.Client(), dial(t, rest.Options{URL: b.URL, Token: b.Token})
	for _, script := range []string{
		"return 1", "return -9007199254740991", "return false", "return true", "return ''", "return 'OK'", "return {}",
		"return {1, 'a', {'b', {2}}, ''}", "return redis.status_reply('OK')", "return redis.status_reply('FINE')", "return redis.error_reply('ERR of a script')",
		"return redis.error_reply('NOSCRIPT of it')", "return {false, 1, false}",
		"local all = {}; for i = 0, 255 do all[i + 1] = string.char(i) end; return table.concat(all)",
		"return redis.call('INFO', 'server') ~= ''", "error('it failed\\nin two lines')",
	} {
		want, wanted := direct.Eval(t.Context(), script, nil).Result()
		got, failed := over.Eval(t.Context(), script, nil).Result()
		if !equal(got, want) || (failed == nil) != (wanted == nil) || errors.Is(wanted, goredis.Nil) != errors.Is(failed, goredis.Nil) {
			t.Errorf("%s: got %#v, %v; want %#v, %v", script, got, failed, want, wanted)
		}
	}
	if _, err := over.Eval(t.Context(), "return redis.error_reply('NOSCRIPT of it')", nil).Result(); !goredis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("an error is %v (%T)", err, err)
	}
}

func equal(a, b any) bool {
	x, ok := a.([]any)
	y, also := b.([]any)
	if !ok || !also || len(x) != len(y) {
		return ok == also && !ok && a == b
	}
	for i := range x {
		if !equal(x[i], y[i]) {
			return false
		}
	}
	return true
}

// TestArgumentsAreHexadecimal and all else is text.
func TestArgumentsAreHexadecimal(t *testing.T) {
	b := redistest.Start(t).StartBridge()
	c := dial(t, rest.Options{URL: b.URL + "/", Token: b.Token})
	if got, err := c.Eval(t.Context(), "return {KEYS[1], ARGV[1], ARGV[2]}", []string{"<ключ>"}, "a\x00\xff", 7).StringSlice(); err != nil || strings.Join(got, " ") != "<ключ> 6100ff 37" {
		t.Errorf("a script gets %q, %v", got, err)
	}
	if err := c.Set(t.Context(), "a", "\xff", 0).Err(); err == nil || !strings.Contains(err.Error(), "word 2 of the command set is not a text") {
		t.Errorf("bytes are sent as text: %v", err)
	}
	if err := c.Eval(t.Context(), "return 1", []string{"\xff"}).Err(); err == nil {
		t.Error("a key of bytes is sent as text")
	}
}

func TestAPipelineIsOneRequest(t *testing.T) {
	b := redistest.Start(t).StartBridge()
	c := dial(t, rest.Options{URL: b.URL, Token: b.Token})
	replies, err := c.Pipelined(t.Context(), func(p goredis.Pipeliner) error {
		p.Set(t.Context(), "a", strings.Repeat("x", 100_000), 0)
		p.EvalSha(t.Context(), strings.Repeat("0", 40), nil)
		p.StrLen(t.Context(), "a")
		return nil
	})
	if !goredis.HasErrorPrefix(err, "NOSCRIPT") || replies[2].(*goredis.IntCmd).Val() != 100_000 || b.Requests() != 1 {
		t.Errorf("got %v, %v in %d requests", replies, err, b.Requests())
	}
}

func TestRequests(t *testing.T) {
	var got *http.Request
	var sent []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		sent, _ = io.ReadAll(r.Body)
		http.Redirect(w, r, "/elsewhere", http.StatusPermanentRedirect)
	}))
	defer server.Close()
	err := dial(t, rest.Options{URL: server.URL + "/a/b/", Token: "secret"}).Ping(t.Context()).Err()
	if f, ok := errors.AsType[*store.Failure](err); !ok || !strings.Contains(f.Why, "write the URL that it leads to") {
		t.Errorf("a redirect is %v", err)
	}
	if got.URL.Path != "/a/b/" || got.Method != http.MethodPost || got.Header.Get("Authorization") != "Bearer secret" || got.Header.Get("Upstash-Encoding") != "base64" {
		t.Errorf("asked for %s %s with %v", got.Method, got.URL, got.Header)
	}
	if string(sent) != "[\"ping\"]\n" {
		t.Errorf("sent %q", sent)
	}
}

// TestADeadlineEndsARequest, and so does Close.
func TestADeadlineEndsARequest(t *testing.T) {
	asked := make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or it is not seen that the client goes
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	c := dial(t, rest.Options{URL: server.URL, Token: "t"})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := c.Ping(ctx).Err(); store.Unreached(err) == nil || !strings.Contains(store.Unreached(err).Why, "did not answer in time") {
		t.Errorf("after the deadline: %v", err)
	}
	<-asked
	ended := make(chan error)
	go func() { ended <- c.Ping(context.Background()).Err() }()
	<-asked
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("a call outlived its connection with an answer")
	}
}

// TestManyRequestsShareAConnection where the service speaks HTTP/2.
func TestManyRequestsShareAConnection(t *testing.T) {
	b := redistest.Start(t).StartBridge()
	dialled := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("a request by %s", r.Proto)
		}
		b.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	trusted := server.Client().Transport.(*http.Transport).TLSClientConfig
	count := func(context.Context, string, string, syscall.RawConn) error { dialled++; return nil }
	c := dial(t, rest.Options{URL: server.URL, Token: b.Token, TLS: trusted, Control: count})
	for range 3 {
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if dialled != 1 {
		t.Errorf("dialled %d times", dialled)
	}
}

func TestAnAddressMayBeRefused(t *testing.T) {
	refuse := func(context.Context, string, string, syscall.RawConn) error { return &store.Failure{Why: "not there"} }
	err := dial(t, rest.Options{URL: "http://127.0.0.1:1", Token: "t", Control: refuse}).Ping(t.Context()).Err()
	if f := store.Unreached(err); f == nil || f.Why != "not there" {
		t.Errorf("got %v", err)
	}
}
