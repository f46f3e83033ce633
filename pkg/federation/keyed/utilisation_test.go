package keyed_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestManyKeysAreUsedUp offers three regions 2,000 keys by Zipf's law, over a link of 20 ms
// there and back. In each window a key could be admitted as much as was asked for, up to the
// limit. With a static split each region has a third of that, and a central counter is asked
// once for each request.
func TestManyKeysAreUsedUp(t *testing.T) {
	for _, c := range []struct {
		exponent float64
		limit    int64
	}{{1.05, 20}, {1.05, 200}, {1.5, 200}} {
		t.Run(fmt.Sprintf("exponent %v, limit %d", c.exponent, c.limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const window, windows, rate = 10 * time.Second, 2, 500
				w := newTown(t, params(c.limit, window), 20*time.Millisecond, plain)
				w.nextWindow()
				first := int64(w.hub.Now()) / int64(w.params.Window)
				var all sync.WaitGroup
				var requests atomic.Int64
				parts := [3]map[place]int64{{}, {}, {}}
				for region := range w.regions {
					own := rand.New(rand.NewPCG(1, uint64(region)))
					zipf := rand.NewZipf(own, c.exponent, 1, 1_999)
					share := rate * (1 + region) / 2 // regions differ in demand
					all.Go(func() {
						for ends := time.Now().Add(windows * window); time.Now().Before(ends); {
							key := int(zipf.Uint64())
							parts[region][place{fmt.Sprint("k", key), int64(w.hub.Now()) / int64(w.params.Window)}]++
							requests.Add(1)
							all.Go(func() { w.ask(region, key, 1, 1) })
							time.Sleep(time.Duration(own.ExpFloat64() * float64(time.Second) / float64(share)))
						}
					})
				}
				all.Wait()
				w.requireWithin()
				offered := map[place]int64{}
				var split int64
				for _, part := range parts {
					for at, n := range part {
						offered[at] += n
						split += min(n, c.limit/3)
					}
				}
				var could, admitted int64
				for at, n := range offered {
					if at.index < first+windows {
						could += min(n, c.limit)
						admitted += w.admitted[at]
					}
				}
				used := float64(admitted) / float64(could)
				t.Logf("%d requests for %d keys and windows: %.3f of what could be is admitted, %.3f by a static split; %d messages, %.3f for an admitted request, with %.1f keys each",
					requests.Load(), len(offered), used, float64(split)/float64(could), w.hub.Seen().Messages, float64(w.hub.Seen().Messages)/float64(admitted), float64(w.hub.Seen().Asks)/float64(w.hub.Seen().Messages))
				if used < 0.97 {
					t.Errorf("%.3f of what could be is admitted, want 0.97", used)
				}
			})
		})
	}
}
