package stores

import (
	"context"
	"math/rand/v2"
	"time"
)

// refreshEvery is the mean time between two refreshes of a store. Each one waits
// up to half as long less or more, so that a fleet does not call in step.
const refreshEvery = 2 * time.Second

// upkept is a store that has to be refreshed while nobody asks it.
type upkept interface {
	Refresh(ctx context.Context) error
}

// keepUp refreshes s at once and then until ctx is done. A sidecar remembers
// refusals and may leave its store alone for the rest of a window; without this a
// store that was new, restarted or flushed meanwhile would begin to remember in the
// next window only, and not serve that one.
//
// A refresh that fails is none: the next one tries again, and only requests say
// whether the store is available.
func keepUp(ctx context.Context, s upkept) {
	for {
		_ = s.Refresh(ctx)
		select {
		case <-time.After(refreshEvery/2 + rand.N(refreshEvery)):
		case <-ctx.Done():
			return
		}
	}
}
