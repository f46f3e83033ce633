package exchange

import (
	"context"
	"sync"
)

// Drain waits until all that is running has ended. When ctx is done before, it calls cut, which has the rest
// end, and waits for that. cut is called in any case, as the last thing of a server.
func Drain(ctx context.Context, running *sync.WaitGroup, cut func()) {
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	cut()
	<-done
}
