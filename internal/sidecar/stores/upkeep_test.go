package stores

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// calls is a store that notes when it is refreshed, and then fails.
type calls struct{ at []time.Time }

func (c *calls) Refresh(context.Context) error {
	c.at = append(c.at, time.Now())
	return errors.New("unavailable")
}

func TestAStoreIsRefreshedAtOnceAndThenWithJitterWhateverFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds = 100
		start, made := time.Now(), &calls{}
		ctx, cancel := context.WithTimeout(t.Context(), rounds*refreshEvery)
		defer cancel()
		keepUp(ctx, made)
		if took := time.Since(start); took != rounds*refreshEvery {
			t.Errorf("ended after %v, want the end of its context", took)
		}
		if first := made.at[0].Sub(start); first != 0 {
			t.Errorf("the first refresh came after %v", first)
		}
		if n := len(made.at); n < rounds*3/4 || n > rounds*5/4 {
			t.Errorf("%d refreshes in %v", n, rounds*refreshEvery)
		}
		waits := map[time.Duration]bool{}
		for i, at := range made.at[1:] {
			wait := at.Sub(made.at[i])
			waits[wait] = true
			if wait < refreshEvery/2 || wait > refreshEvery*3/2 {
				t.Errorf("refresh %d came after %v", i+1, wait)
			}
		}
		if len(waits) < rounds/2 {
			t.Errorf("only %d different waits: a fleet would call in step", len(waits))
		}
	})
}
