package stores_test

import (
	"net"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// TestAnIdleStoreLearnsOfALossByItself has a store refuse something for an hour, and asks
// it nothing more.
func TestAnIdleStoreLearnsOfALossByItself(t *testing.T) {
	t.Parallel() // it waits for refreshes
	server := redistest.Start(t)
	p := newPool(t)
	refuse(t, open(t, p, redisAt(server.Addr)))
	for _, loss := range []struct {
		name   string
		happen func()
	}{
		{"being new", func() {}},
		{"a flush", server.Flush},
		{"a restart", server.Restart},
	} {
		loss.happen()
		deadline := time.After(10 * time.Second)
		for len(server.Do("KEYS", "weir:*:memory").([]any)) < 64 {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-deadline:
				t.Fatalf("after %s the store does not begin to remember", loss.name)
			}
		}
	}
}

func refuse(t *testing.T, s twotier.Store) {
	t.Helper()
	key := store.Key{Scope: store.Scope{Cluster: "test", Namespace: "shop", Policy: "p", Limit: "l"}, Hash: "ab"}
	p := limiter.Params{Rates: []limiter.Rate{{Limit: 1, Window: 3600 * limiter.Second}}, Generation: 1}
	r, err := s.Apply(t.Context(), key, p, limiter.Command{Op: limiter.Take, Min: 1, Want: 1})
	if err != nil || r.Remaining > 0 {
		t.Fatalf("got %+v, %v", r, err)
	}
}

// TestClosingDoesNotWaitForAServerThatHangs closes a store whose refresh is under
// way.
func TestClosingDoesNotWaitForAServerThatHangs(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := listener.(*net.TCPListener).SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	p := newPool(t)
	open(t, p, redisAt(listener.Addr().String()))
	called, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer called.Close()
	if _, err := called.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	p.Retain(nil)
	if took := time.Since(start); took > 900*time.Millisecond {
		t.Errorf("closing took %v", took)
	}
}
