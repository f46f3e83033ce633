package backend_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/pkg/store"
)

type opened struct {
	backend.Calls

	version int
}

func TestAHandleLeadsToWhatWasOpenedLast(t *testing.T) {
	h := backend.Handle[*opened]{Name: "redis at redis:1"}
	notYet, noLonger := errors.New("not yet"), errors.New("no longer")
	fails := func(cause error) {
		t.Helper()
		on, err := h.Enter()
		away, is := errors.AsType[*store.UnavailableError](err)
		if on != nil || !is || away.Store != h.Name || !errors.Is(err, cause) {
			t.Errorf("entered %v, error %v; want %s: %v", on, err, h.Name, cause)
		}
	}
	leads := func(to *opened) {
		t.Helper()
		on, err := h.Enter()
		if err != nil || on != to || h.Look() != to {
			t.Fatalf("entered %v, error %v, want %v", on, err, to)
		}
		on.Leave()
	}
	if !h.Fail(errors.New("not yet")) || h.Fail(notYet) {
		t.Error("the same cause is news twice, or not once")
	}
	fails(notYet)
	first, second := &opened{version: 1}, &opened{version: 2}
	if before := h.Replace(first, nil); before != nil {
		t.Errorf("it led to %v before it was opened", before)
	}
	leads(first)
	if !h.Fail(notYet) {
		t.Error("what keeps it from being opened again is not news")
	}
	leads(first)
	if before := h.Replace(second, nil); before != first {
		t.Errorf("it led to %v, want %v", before, first)
	}
	leads(second)
	h.Replace(nil, noLonger)
	fails(noLonger)
}

// TestWhatIsReplacedIsAwaited lets a call begin before what it asks is replaced, and end later.
func TestWhatIsReplacedIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h backend.Handle[*opened]
		h.Replace(&opened{}, nil)
		on, err := h.Enter()
		if err != nil {
			t.Fatal(err)
		}
		before, closed := h.Replace(&opened{}, nil), false
		go func() {
			before.Await()
			closed = true
		}()
		synctest.Wait()
		if closed {
			t.Error("it is closed while a call is under way")
		}
		on.Leave()
		synctest.Wait()
		if !closed {
			t.Error("it is not closed when the last call has ended")
		}
	})
}
