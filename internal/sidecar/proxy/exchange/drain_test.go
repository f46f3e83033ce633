package exchange

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestAServerIsDrained: what runs is cut off when it has ended, or when its time is over.
func TestAServerIsDrained(t *testing.T) {
	for name, tc := range map[string]struct{ lasts, want time.Duration }{
		"it ends in time":  {time.Second, time.Second},
		"it does not":      {time.Hour, time.Minute},
		"nothing is there": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithTimeout(t.Context(), time.Minute)
				defer end()
				var running sync.WaitGroup
				cut := make(chan struct{})
				ended := false
				if tc.lasts > 0 {
					running.Go(func() {
						select {
						case <-time.After(tc.lasts):
						case <-cut:
						}
						ended = true
					})
				}
				begun := time.Now()
				Drain(ctx, &running, func() { close(cut) })
				if took := time.Since(begun); took != tc.want {
					t.Errorf("it took %v, want %v", took, tc.want)
				}
				if tc.lasts > 0 && !ended {
					t.Error("something goes on")
				}
				select {
				case <-cut:
				default:
					t.Error("nothing was cut off")
				}
			})
		})
	}
}
