package storetest

import (
	"context"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A Resetter is a Store that sets counters back.
type Resetter interface {
	Reset(ctx context.Context, scope store.Scope, hash *string) (int, error)
}

// testResetLimit spends counters of a limit, and of others whose names are near, and sets
// one of them, and then all, back.
func testResetLimit(t *testing.T, h harness) {
	resetter, ok := h.Store.(Resetter)
	if !ok {
		t.Skip("the subject sets nothing back")
	}
	p := fixed(1, 5, h.openWindow(t))
	near := []store.Key{key("a"), key("b"), key("ab")}
	for _, name := range []string{"l2", "", "*", "L"} {
		k := key("a")
		k.Scope.Limit = name
		near = append(near, k)
	}
	for _, k := range near {
		if res := h.apply(t, k, p, take(5, 5)); res.Granted != 5 {
			t.Fatalf("%s before: got %v of %d, want 5", k, res.Reason, res.Granted)
		}
	}
	left := func(want map[store.Key]bool) {
		t.Helper()
		for _, k := range near {
			res := h.apply(t, k, p, limiter.Command{Op: limiter.Peek, Min: 1, Want: 5})
			if (res.Remaining == 5) != want[k] {
				t.Errorf("%s has %d left", k, res.Remaining)
			}
		}
	}
	left(map[store.Key]bool{})
	hash := "a"
	if n, err := resetter.Reset(t.Context(), near[0].Scope, &hash); n != 1 || err != nil {
		t.Fatalf("of one key: %d, %v", n, err)
	}
	left(map[store.Key]bool{near[0]: true})
	if n, err := resetter.Reset(t.Context(), near[0].Scope, nil); n < 3 || err != nil {
		t.Fatalf("of the limit: %d, %v", n, err)
	}
	left(map[store.Key]bool{near[0]: true, near[1]: true, near[2]: true})
}
