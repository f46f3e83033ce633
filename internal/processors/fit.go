package processors

import (
	"context"
	"os"
	"runtime"
	"time"
)

// Fit has Go code run on one processor, and on more while the program uses most of those it
// has: at most as many as Go had chosen. It does so until ctx is done, and returns at once.
// GOMAXPROCS in the environment takes precedence, and it does nothing where the system
// does not say what the program uses.
func Fit(ctx context.Context) {
	most := runtime.GOMAXPROCS(0)
	if _, ok := used(); !ok || most == 1 || os.Getenv("GOMAXPROCS") != "" {
		return
	}
	runtime.GOMAXPROCS(1)
	go follow(ctx, need{most: most, now: 1}, used, func(n int) { runtime.GOMAXPROCS(n) })
}

// follow looks at what was used, and sets the number of processors where that is another.
func follow(ctx context.Context, n need, used func() (time.Duration, bool), set func(int)) {
	before, _ := used()
	at, pause := time.Now(), often
	look := time.NewTimer(pause)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		now, _ := used()
		had := n.now
		pause = n.next(float64(now-before) / float64(time.Since(at)))
		if n.now != had {
			set(n.now)
		}
		before, at = now, time.Now()
		look.Reset(pause)
	}
}
