package enforce

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// TestADecisionDoesNotWaitForATableThatWasReplaced holds the lock that the goroutine that closes a
// table takes, and never gives it back. Some of the decisions find the table before it is
// replaced.
func TestADecisionDoesNotWaitForATableThatWasReplaced(t *testing.T) {
	e := New(Config{Log: slog.New(slog.DiscardHandler)})
	for range 1000 {
		before, next := e.current.Load(), new(table)
		before.users.Lock()
		begun, entered := make(chan struct{}), make(chan *table)
		go func() {
			close(begun)
			entered <- e.enter()
		}()
		<-begun
		runtime.Gosched()
		e.current.Store(next)
		got := <-entered
		if got != next {
			t.Fatal("the decision uses a table that was replaced")
		}
		got.leave()
	}
}

// slow is an engine that takes its time to close.
type slow struct {
	Limiter
	closing, done chan struct{}
}

func (s *slow) Close(context.Context) {
	close(s.closing)
	<-s.done
}

func TestEnginesCloseWithoutTheLockOfDecisions(t *testing.T) {
	engine := &slow{closing: make(chan struct{}), done: make(chan struct{})}
	before := &table{byScope: map[store.Scope]*limit{{}: {engine: engine}}}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		before.close(t.Context(), new(table))
	}()
	<-engine.closing
	if !before.users.TryRLock() {
		t.Error("a decision would wait until the engine is closed")
	}
	close(engine.done)
	<-closed
}

// TestHoldersOfPoliciesThatAreGoneAreForgotten, though not those of a policy that may
// come back: nobody says them again.
func TestHoldersOfPoliciesThatAreGoneAreForgotten(t *testing.T) {
	e := New(Config{Log: slog.New(slog.DiscardHandler)})
	here := policyName{"shop", "here"}
	set := &policy.Set{Snapshot: policy.Snapshot{Policies: []policy.Policy{{Namespace: here.namespace, Name: here.policy}}}}
	e.SetHolders(here.namespace, here.policy, 7)
	for n := range 10 * maxGone {
		e.SetHolders("shop", fmt.Sprintf("gone-%d", n), 3)
		e.forget(set)
		if len(e.holders) > maxGone+1 {
			t.Fatalf("the holders of %d policies are kept", len(e.holders))
		}
		if n == 9 && len(e.holders) != 11 {
			t.Errorf("of 10 that are gone %d are kept", len(e.holders)-1)
		}
	}
	if e.holders[here] != 7 {
		t.Errorf("a policy in force has %d holders, want 7", e.holders[here])
	}
}
