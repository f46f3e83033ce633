package gateway

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "hunter2"

// A server is a Backend that notes what it is asked.
type server struct {
	backend.Backend

	secret  string
	hang    bool
	err     error
	reached store.Reached

	mu     sync.Mutex
	asked  int
	key    store.Key
	params limiter.Params
	closed bool
}

func (s *server) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	s.mu.Lock()
	s.asked, s.key, s.params = s.asked+1, key, p
	s.mu.Unlock()
	if s.hang {
		<-ctx.Done()
		return limiter.Result{}, &store.UnavailableError{Store: "redis at cache:6379", Cause: store.Unreached(ctx.Err())}
	}
	return limiter.Result{Granted: c.Want, Now: 7}, s.err
}

func (s *server) Refresh(context.Context) error        { return nil }
func (s *server) Coordinator() concurrency.Coordinator { return nil }
func (s *server) Reached(by store.Reached)             { s.reached = by }
func (s *server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (s *server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// servers opens them.
type servers struct {
	opened []*server
	next   server // which the next one is like
	err    error
}

func (o *servers) open(_ policy.Store, values map[string][]byte) (backend.Backend, error) {
	if o.err != nil {
		return nil, o.err
	}
	s := &server{secret: string(values["password"]), hang: o.next.hang, err: o.next.err}
	o.opened = append(o.opened, s)
	return s, nil
}

func redisAt(address, version string) policy.Store {
	return policy.Store{Type: policy.RedisStore, Address: address, Secret: "shop/redis", SecretVersion: version, Gateway: true}
}

func newSet(o *servers) *Set {
	return New(Config{
		Open: o.open,
		Secret: func(_ context.Context, of policy.Store) (map[string][]byte, error) {
			return map[string][]byte{"password": []byte(secret + of.SecretVersion)}, nil
		},
		Reached: func(policy.Store) store.Reached { return store.Reached{Now: 5, Doubtful: 6} },
		Log:     logr.Discard(),
	})
}

var (
	key  = store.Key{Scope: store.Scope{Cluster: "c", Namespace: "shop", Policy: "checkout", Limit: "all"}, Hash: "ab"}
	take = limiter.Command{Op: limiter.Take, Min: 1, Want: 5}
)

func (s *Set) take(of policy.Store) (limiter.Result, error) {
	return s.Apply(context.Background(), of.Sent().Address, key, limiter.Params{Generation: 3}, take)
}

// unavailable checks that err is an outage that says nothing of where the store is.
func unavailable(t *testing.T, err error, why string) {
	t.Helper()
	away, is := errors.AsType[*store.UnavailableError](err)
	if !is || away.Part != nil || !strings.Contains(err.Error(), why) {
		t.Errorf("got error %v, want an outage that says %q", err, why)
	}
	for _, hidden := range []string{"cache", "6379", secret} {
		if err != nil && strings.Contains(err.Error(), hidden) {
			t.Errorf("the error shows %q: %v", hidden, err)
		}
	}
}

// TestAStoreIsOpenedAgainWithOtherCredentials, and the one before is closed after its last
// call.
func TestAStoreIsOpenedAgainWithOtherCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &servers{}
		s := newSet(o)
		defer s.Close()
		unavailable(t, func() error { _, err := s.take(redisAt("cache:6379", "1")); return err }(), "has not opened it")
		s.Keep(t.Context(), redisAt("cache:6379", "1"))
		s.Keep(t.Context(), redisAt("cache:6379", "1"))
		res, err := s.take(redisAt("cache:6379", "1"))
		if err != nil || res.Granted != 5 || res.Now != 7 {
			t.Fatalf("granted %+v, error %v", res, err)
		}
		first := o.opened[0]
		if len(o.opened) != 1 || first.secret != secret+"1" || first.key != key || first.params.Generation != 3 {
			t.Errorf("%d are open, the first with %q, and was asked for %v by %+v", len(o.opened), first.secret, first.key, first.params)
		}
		if first.reached != (store.Reached{Now: 5, Doubtful: 6}) {
			t.Errorf("it knows of its clock that it has reached %+v", first.reached)
		}

		o.next.hang = true
		s.Keep(t.Context(), redisAt("cache:6379", "2"))
		synctest.Wait()
		if !first.isClosed() || len(o.opened) != 2 || o.opened[1].secret != secret+"2" {
			t.Fatal("it is not open with the new credentials alone")
		}
		go func() { _, _ = s.take(redisAt("cache:6379", "2")) }()
		synctest.Wait()
		s.Keep(t.Context(), redisAt("cache:6379", "")) // which cannot be read now
		o.err = errors.New("password of secret shop/redis is missing")
		s.Keep(t.Context(), redisAt("cache:6379", "3"))
		s.Retain(map[string]struct{}{redisAt("cache:6379", "").Sent().Address: {}})
		synctest.Wait()
		if o.opened[1].isClosed() {
			t.Error("it is closed although it is in use")
		}
		s.Retain(nil)
		synctest.Wait()
		if o.opened[1].isClosed() {
			t.Error("it is closed while a call is under way")
		}
		time.Sleep(callTime)
		synctest.Wait()
		if !o.opened[1].isClosed() {
			t.Error("it is open although nobody uses it")
		}
	})
}

// TestAStoreThatCannotBeOpened is away, and says no more than that.
func TestAStoreThatCannotBeOpened(t *testing.T) {
	for name, change := range map[string]func(*Set, *servers){
		"its Secret cannot be read": func(s *Set, _ *servers) {
			s.Secret = func(context.Context, policy.Store) (map[string][]byte, error) { return nil, errors.New(secret) }
		},
		"its Secret lacks a value": func(_ *Set, o *servers) { o.err = errors.New("cache:6379: " + secret) },
		"none can be opened":       func(s *Set, _ *servers) { s.Open = nil },
	} {
		t.Run(name, func(t *testing.T) {
			o := &servers{}
			s := newSet(o)
			defer s.Close()
			change(s, o)
			s.Keep(t.Context(), redisAt("cache:6379", "1"))
			_, err := s.take(redisAt("cache:6379", "1"))
			unavailable(t, err, "has not opened it")
		})
	}
}

// TestASlowStoreHoldsUpNobodyElse: its calls are bounded in number and in time.
func TestASlowStoreHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &servers{next: server{hang: true}}
		s := newSet(o)
		defer s.Close()
		slow, other := redisAt("cache:6379", "1"), redisAt("other:6379", "1")
		s.Keep(t.Context(), slow)
		o.next.hang = false
		s.Keep(t.Context(), other)
		start := time.Now()
		var calls sync.WaitGroup
		for range maxCalls {
			calls.Go(func() {
				_, err := s.take(slow)
				unavailable(t, err, "did not answer in time")
			})
		}
		synctest.Wait()
		_, err := s.take(slow)
		unavailable(t, err, "it is slow")
		if _, err := s.take(other); err != nil {
			t.Errorf("another store: %v", err)
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("they waited for %v", waited)
		}
		calls.Wait()
		if took := time.Since(start); took != callTime || o.opened[0].asked != maxCalls {
			t.Errorf("%d calls took %v, want %d of %v", o.opened[0].asked, took, maxCalls, callTime)
		}
		o.opened[0].hang = false
		if _, err := s.take(slow); err != nil {
			t.Errorf("when it is fast again: %v", err)
		}
	})
}

// TestErrorsKeepTheirKind: an outage of a part stays one, and a defect does not become one.
func TestErrorsKeepTheirKind(t *testing.T) {
	part := store.Scope{Namespace: "shop"}
	o := &servers{next: server{err: &store.UnavailableError{
		Store: "redis at cache:6379", Part: part, Cause: &store.Failure{Why: "it is a replica", Cause: errors.New(secret)},
	}}}
	s := newSet(o)
	defer s.Close()
	of := redisAt("cache:6379", "1")
	s.Keep(t.Context(), of)
	_, err := s.take(of)
	away, is := errors.AsType[*store.UnavailableError](err)
	if want := of.Sent().Name() + ": it is a replica"; !is || away.Part != part || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	o.opened[0].err = errors.New("redis at cache:6379: something else uses weir:1: " + secret)
	_, err = s.take(of)
	if _, is := errors.AsType[*store.Failure](err); !is || strings.Contains(err.Error(), "cache") || strings.Contains(err.Error(), secret) {
		t.Errorf("a defect is %v", err)
	}
	if _, is := errors.AsType[*store.UnavailableError](err); is {
		t.Error("a defect is an outage")
	}
}
