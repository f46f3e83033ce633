package jwks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-dev/weir/pkg/store"
)

// An origin is what sets are read from. Time passes as in the bubble of a test.
type origin struct {
	keys  string
	err   error
	reads atomic.Int64
}

func (o *origin) fetch(context.Context, string) (string, error) {
	o.reads.Add(1)
	return o.keys, o.err
}

// started returns a Cache that reads from the origin, in the bubble of the test.
func started(t *testing.T, fetch func(context.Context, string) (string, error)) *Cache {
	t.Helper()
	c := NewCache(clock.RealClock{}, fetch)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c
}

// settled returns what a Cache knows once a reading that is due is over.
func settled(c *Cache, namespace, url string) (string, error) {
	_, _ = c.Keys(namespace, url)
	synctest.Wait()
	return c.Keys(namespace, url)
}

func TestSetsAreReadOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &origin{keys: "old"}
		c := started(t, o.fetch)
		if keys, err := c.Keys("shop", "u"); keys != "" || !errors.Is(err, ErrPending) {
			t.Errorf("before it is read Keys = %q, %v", keys, err)
		}
		synctest.Wait()
		expect(t, c, "old", "", 1, o)

		o.keys = "new"
		time.Sleep(refreshAfter - 1)
		expect(t, c, "old", "", 1, o)
		time.Sleep(time.Nanosecond)
		expect(t, c, "new", "", 2, o)
	})
}

// expect checks what is known of a set that is read when it is due.
func expect(t *testing.T, c *Cache, keys, failure string, reads int64, o *origin) {
	t.Helper()
	got, err := settled(c, "shop", "u")
	if got != keys || (err == nil) != (failure == "") || err != nil && err.Error() != failure {
		t.Errorf("Keys = %q, %v; want %q, %q", got, err, keys, failure)
	}
	if n := o.reads.Load(); n != reads {
		t.Errorf("it was read %d times, want %d", n, reads)
	}
}

func TestTheLastGoodSetStaysWhileReadingsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &origin{keys: "good"}
		c := started(t, o.fetch)
		expect(t, c, "good", "", 1, o)
		o.keys, o.err = "", &store.Failure{Why: "it is away", Cause: errors.New("what it sent")}
		time.Sleep(refreshAfter)
		reads := int64(2)
		for _, pause := range []int64{10, 20, 40, 80, 160, 300, 300} {
			expect(t, c, "good", "it is away", reads, o)
			time.Sleep(time.Duration(pause)*time.Second - time.Nanosecond)
			expect(t, c, "good", "it is away", reads, o)
			time.Sleep(time.Nanosecond)
			reads++
		}
		o.keys, o.err = "new", nil
		expect(t, c, "new", "", reads, o)
		o.err = errors.New("again")
		time.Sleep(refreshAfter)
		_, _ = settled(c, "shop", "u")
		time.Sleep(retryFirst)
		o.err = nil
		expect(t, c, "new", "", reads+2, o) // it began again with the shortest pause
	})
}

func TestNamespacesShareNoSets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &origin{keys: "good"}
		c := started(t, o.fetch)
		expect(t, c, "good", "", 1, o)
		if _, err := c.Keys("other", "u"); !errors.Is(err, ErrPending) {
			t.Errorf("another namespace learns that somebody reads it: %v", err)
		}
	})
}

func TestSetsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &origin{keys: "good"}
		c := started(t, o.fetch)
		for i := range maxOfSpace {
			_, _ = c.Keys("greedy", fmt.Sprint(i))
		}
		if _, err := c.Keys("greedy", "more"); err == nil || !strings.Contains(err.Error(), "of the namespace name 32 other URLs") {
			t.Errorf("one more of a namespace: %v", err)
		}
		for i := range maxSets - maxOfSpace {
			if _, err := c.Keys(fmt.Sprint(i), "u"); !errors.Is(err, ErrPending) {
				t.Fatalf("set %d: %v", i, err)
			}
		}
		if _, err := c.Keys("more", "u"); err == nil || !strings.Contains(err.Error(), "of the cluster name 1000 other URLs") {
			t.Errorf("one more of all: %v", err)
		}
		synctest.Wait()
		time.Sleep(keptFor - 1)
		_, _ = c.Keys("greedy", "0")
		time.Sleep(time.Nanosecond)
		if _, err := c.Keys("greedy", "more"); !errors.Is(err, ErrPending) {
			t.Errorf("sets that nobody asks for take room: %v", err)
		}
		if keys, _ := c.Keys("greedy", "0"); keys != "good" {
			t.Error("a set that was asked for is forgotten")
		}
	})
}

// TestReadingsAreBounded: one namespace may use every reader for a while, and others
// are served after a time-out or two.
func TestReadingsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		c := started(t, func(ctx context.Context, _ string) (string, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(fetchTimeout)
			return "", ctx.Err()
		})
		for i := range maxOfSpace {
			_, _ = c.Keys("slow", fmt.Sprint(i))
		}
		_, _ = c.Keys("shop", "u")
		time.Sleep(3*fetchTimeout + 1)
		synctest.Wait()
		if most.Load() != readers {
			t.Errorf("%d were read at once, want %d", most.Load(), readers)
		}
		if _, err := c.Keys("shop", "u"); errors.Is(err, ErrPending) {
			t.Error("a namespace waits for the slow servers of another")
		}
	})
}
