package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// A rateLimiter is two processes that answer Envoy's calls over one Redis.
type rateLimiter struct {
	name      string
	addresses []string
	clients   []ratelimitv3.RateLimitServiceClient
	store     *servers.Server
}

// envoys is the rate limit service that Envoy's users run.
const envoys = "envoyproxy/ratelimit"

// TestRateLimitService asks sidecars and envoyproxy/ratelimit the same, with that project's own
// client where that can say it. Each has to answer as the case says, and every difference has
// to be one that docs/envoy.md names.
func TestRateLimitService(t *testing.T) {
	awaitDay(t)
	cases := rateLimitCases()
	client := program(t, "ratelimit-client")
	for _, start := range []func(*testing.T) *rateLimiter{startLimiters, startEnvoys} {
		r := start(t)
		t.Run(r.name, func(t *testing.T) {
			passed := 0
			for i, c := range cases {
				got, err := c.play(t, r, client, i)
				for again := range 4 { // a busy machine may take longer than a sidecar waits for its store
					if err != nil {
						got, err = c.play(t, r, client, i+(again+1)*len(cases))
					}
				}
				want := c.want
				if r.name == envoys && c.other != "" {
					want = c.other
				}
				if err != nil || got != want {
					t.Errorf("%s: it answers\n%s, want\n%s: %v", c.name, got, want, err)
					continue
				}
				passed++
			}
			noteCalls(r.name, passed, len(cases))
		})
	}
	for _, c := range cases {
		if c.other != "" {
			noteDifference(c)
		}
	}
}

// awaitDay waits where a day is about to end: the limits are of a day.
func awaitDay(t *testing.T) {
	t.Helper()
	await(t, "the new day", func() error {
		if left := untilTomorrow(time.Now()); left < 50*time.Second {
			return fmt.Errorf("it begins in %v", left)
		}
		return nil
	})
}

func untilTomorrow(now time.Time) time.Duration {
	return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
}

// startStore starts a Redis, and returns it with the memories that limits are born in.
func startStore(t *testing.T) (*servers.Server, []limiter.MemoryID) {
	t.Helper()
	store, err := servers.Redis(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Kill)
	client := redis.Dial(store.Address)
	defer client.Close()
	facts, err := client.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return store, facts.Volatile.Memories
}

// startLimiters starts two sidecars.
func startLimiters(t *testing.T) *rateLimiter {
	t.Helper()
	store, born := startStore(t)
	r := &rateLimiter{name: limited, store: store}
	for range 2 {
		listen := freeAddress(t)
		runSidecar(t, rateLimitPolicies(store.Address, born), "--rls-address", listen)
		r.connect(t, listen)
	}
	return r
}

// startEnvoys starts two processes of envoyproxy/ratelimit, without its cache: Weir keeps none
// for limits that are asked for each call.
func startEnvoys(t *testing.T) *rateLimiter {
	t.Helper()
	store, _ := startStore(t)
	r := &rateLimiter{name: envoys, store: store}
	root := t.TempDir()
	config := filepath.Join(root, "shop", "config")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, "checkout.yaml"), []byte(rateLimitConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		listen := freeAddress(t)
		run(t, program(t, "ratelimit"), []string{
			"GRPC_HOST=127.0.0.1", "GRPC_PORT=" + portOf(listen), "HOST=127.0.0.1", "PORT=" + portOf(freeAddress(t)),
			"DEBUG_HOST=127.0.0.1", "DEBUG_PORT=" + portOf(freeAddress(t)), "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + store.Address,
			"REDIS_TIMEOUT=1s", "DISABLE_STATS=true", "LOG_LEVEL=ERROR", "LIMIT_RESPONSE_HEADERS_ENABLED=true",
			"RUNTIME_ROOT=" + root, "RUNTIME_SUBDIRECTORY=shop", "RUNTIME_WATCH_ROOT=false",
		})
		r.connect(t, listen)
	}
	return r
}

// connect waits until a process decides.
func (r *rateLimiter) connect(t *testing.T, address string) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	client := ratelimitv3.NewRateLimitServiceClient(conn)
	await(t, r.name, func() error {
		out, err := client.ShouldRateLimit(t.Context(), ask(d("wide", "ready")).request(0), grpc.WaitForReady(true))
		if err == nil && out.GetOverallCode() != ratelimitv3.RateLimitResponse_OK {
			err = errors.New("it admits nothing")
		}
		return err
	})
	r.addresses, r.clients = append(r.addresses, address), append(r.clients, client)
}

// play makes the calls of a case, and returns all answers. The error is that of a window that
// they end otherwise than it does.
func (c *rateLimitCase) play(t *testing.T, r *rateLimiter, client string, number int) (string, error) {
	t.Helper()
	if c.at != nil {
		return c.at(t, r, number)
	}
	var all []string
	var wrong error
	for i, a := range c.calls {
		before := time.Now()
		var out *ratelimitv3.RateLimitResponse
		var err error
		if c.client {
			out, err = a.command(t.Context(), client, r.addresses[i%len(r.addresses)], number)
		} else {
			out, err = r.clients[i%len(r.clients)].ShouldRateLimit(t.Context(), a.request(number))
		}
		wrong = errors.Join(wrong, resets(out, before, time.Now()))
		all = append(all, describe(out, err, c.headers))
	}
	return strings.Join(all, "; "), wrong
}

// resets returns an error unless each status says when its window ends. Envoy's service counts whole seconds.
func resets(out *ratelimitv3.RateLimitResponse, before, after time.Time) error {
	for _, s := range out.GetStatuses() {
		if s.GetCurrentLimit().GetUnit() != ratelimitv3.RateLimitResponse_RateLimit_DAY {
			continue
		}
		got, earliest, latest := s.GetDurationUntilReset().AsDuration(), untilTomorrow(after)-time.Second, untilTomorrow(before)+time.Second
		if got < earliest || got > latest {
			return fmt.Errorf("duration_until_reset is %v, outside %v to %v", got, earliest, latest)
		}
	}
	return nil
}

// command makes a call by the client of envoyproxy/ratelimit.
func (a *asked) command(ctx context.Context, client, address string, number int) (*ratelimitv3.RateLimitResponse, error) {
	in := a.request(number)
	args := []string{"-dial_string", address, "-domain", in.GetDomain()}
	for _, d := range in.GetDescriptors() {
		var pairs []string
		for _, e := range d.GetEntries() {
			pairs = append(pairs, e.GetKey()+"="+e.GetValue())
		}
		args = append(args, "-descriptors", strings.Join(pairs, ","))
	}
	printed, err := exec.CommandContext(ctx, client, args...).Output()
	_, failed, isFailed := bytes.Cut(printed, []byte("request error: rpc error: code = "))
	_, answer, isAnswer := bytes.Cut(printed, []byte("response: "))
	switch {
	case isFailed:
		name, _, _ := bytes.Cut(failed, []byte(" "))
		for code := codes.OK; code <= codes.Unauthenticated; code++ {
			if code.String() == string(name) {
				return nil, status.Error(code, string(failed))
			}
		}
		return nil, fmt.Errorf("the client says %s", printed)
	case err != nil || !isAnswer:
		return nil, fmt.Errorf("the client says %s: %w", printed, err)
	}
	out := new(ratelimitv3.RateLimitResponse)
	return out, prototext.Unmarshal(answer, out)
}

// together makes calls from several callers at once, spread over the processes, and says how many
// are admitted.
func (a *asked) together(t *testing.T, r *rateLimiter, number int) (string, error) {
	t.Helper()
	const callers, each = 16, 25
	var admitted atomic.Int64
	var all sync.WaitGroup
	var mu sync.Mutex
	var wrong error
	for i := range callers {
		all.Go(func() {
			for range each {
				before := time.Now()
				out, err := r.clients[i%len(r.clients)].ShouldRateLimit(t.Context(), a.request(number))
				if err == nil {
					err = resets(out, before, time.Now())
				}
				if err != nil {
					mu.Lock()
					wrong = err
					mu.Unlock()
				}
				if out.GetOverallCode() == ratelimitv3.RateLimitResponse_OK {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	return fmt.Sprintf("%d of %d", admitted.Load(), callers*each), wrong
}

// whilePaused makes a call that its caller leaves while the store does not answer, and then another one.
func (a *asked) whilePaused(t *testing.T, r *rateLimiter, number int, leave func(context.Context) (context.Context, context.CancelFunc)) (string, error) {
	t.Helper()
	r.awaitStore(t, number)
	if err := r.pause(t.Context(), "ALL"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := leave(t.Context())
	out, err := r.clients[0].ShouldRateLimit(ctx, a.request(number))
	stop()
	first := describe(&ratelimitv3.RateLimitResponse{OverallCode: out.GetOverallCode()}, err, false)
	if err := r.pause(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	r.awaitStore(t, number)
	return first + "; then OK", nil
}

// refusedByOneOfTwo asks one process for two limits when nothing is left of one, and then another
// process for the other. The units that the refused call had taken are given back behind its answer, so the
// last call waits until the first process sees that.
func refusedByOneOfTwo(t *testing.T, r *rateLimiter, number int) (string, error) {
	t.Helper()
	user, path := d("user", "#"), d("path", "#")
	c := rateLimitCase{calls: []*asked{ask(path).hits(3), ask(user, path)}}
	begun, err := c.play(t, r, "", number)
	if err != nil {
		return begun, err
	}
	want := "OK [OK 5/5 DAY]"
	if r.name == envoys {
		want = "OK [OK 4/5 DAY]"
	}
	await(t, r.name, func() error {
		out, err := r.clients[0].ShouldRateLimit(t.Context(), ask(d("user", "#").hits(0)).request(number))
		if got := describe(out, err, false); got != want {
			return fmt.Errorf("it answers %s, want %s", got, want)
		}
		return nil
	})
	c.calls = []*asked{ask(user)}
	ended, err := c.play(t, r, "", number)
	return begun + "; " + ended, err
}

// awaitStore waits until the first process decides by its store.
func (r *rateLimiter) awaitStore(t *testing.T, number int) {
	t.Helper()
	await(t, r.name, func() error {
		next, err := r.clients[0].ShouldRateLimit(t.Context(), ask(d("wide", "later")).request(number))
		if err == nil && next.GetOverallCode() != ratelimitv3.RateLimitResponse_OK {
			err = errors.New("it admits nothing")
		}
		return err
	})
}

// pause makes the Redis answer no commands of that kind, and all again when it is empty.
func (r *rateLimiter) pause(ctx context.Context, kind string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.store.Address)
	if err != nil {
		return err
	}
	defer conn.Close()
	line := "CLIENT UNPAUSE\r\n"
	if kind != "" {
		line = fmt.Sprintf("CLIENT PAUSE %d %s\r\n", (3 * time.Second).Milliseconds(), kind)
	}
	if _, err := conn.Write([]byte(line)); err != nil {
		return err
	}
	answer := make([]byte, 5)
	if _, err := conn.Read(answer); err != nil || string(answer) != "+OK\r\n" {
		return fmt.Errorf("redis answers %q to %q: %w", answer, line, err)
	}
	return nil
}
