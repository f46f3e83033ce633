package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// isUnavailable fails the test unless err is the one that failure actions act on.
func isUnavailable(t *testing.T, err error) {
	t.Helper()
	var unavailable *store.UnavailableError
	if !errors.As(err, &unavailable) {
		t.Fatalf("error is %v (%T), want a *store.UnavailableError", err, err)
	}
	if unavailable.Store == "" || unavailable.Cause == nil {
		t.Errorf("error %#v names no store or no cause", unavailable)
	}
}

func testCancelled(t *testing.T, h harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.Store.Apply(ctx, key("a"), fixed(1, 1, limiter.Second), take(1, 1))
	isUnavailable(t, err)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v does not wrap context.Canceled", err)
	}
}

func testBroken(t *testing.T, h harness) {
	h.now(t)
	h.Break()
	_, err := h.Store.Apply(t.Context(), key("a"), fixed(1, 1, limiter.Second), take(1, 1))
	isUnavailable(t, err)
}

func testInvalid(t *testing.T, h harness) {
	valid := fixed(1, 5, limiter.Second)
	for name, call := range map[string]struct {
		params  limiter.Params
		command limiter.Command
	}{
		"nothing wanted":         {valid, take(0, 0)},
		"a negative amount":      {valid, take(1, -5)},
		"less wanted than least": {valid, take(3, 2)},
		"a negative return":      {valid, giveBack(-5, limiter.Windows{})},
		"an unknown operation":   {valid, limiter.Command{Op: limiter.Reset + 1, Min: 1, Want: 1}},
		"windows out of bounds":  {valid, giveBack(1, limiter.Windows{N: limiter.MaxRates + 1})},
		"no rates":               {limiter.Params{Generation: 1}, take(1, 1)},
		"too many rates":         {limiter.Params{Rates: make([]limiter.Rate, limiter.MaxRates+1)}, take(1, 1)},
		"a negative generation":  {fixed(-1, 5, limiter.Second), take(1, 1)},
	} {
		_, err := h.Store.Apply(t.Context(), key("a"), call.params, call.command)
		var unavailable *store.UnavailableError
		if err == nil || errors.As(err, &unavailable) {
			t.Errorf("%s: error is %v, want a plain one", name, err)
		}
	}
}
