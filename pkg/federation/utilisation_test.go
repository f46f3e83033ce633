package federation_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/testing/federationtest"
	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/limiter"
)

// An offer is a load on three regions that equals the limit.
type offer struct {
	limit  int64
	window limiter.Micros
	skew   float64 // 0: all regions alike, 1: one has all
	trip   time.Duration
	batch  federation.Batch
	action federation.Outage
	seed   uint64
}

func (o offer) String() string {
	return fmt.Sprintf("limit %d, window %v, skew %v, trip %v, seed %d", o.limit, time.Duration(o.window)*time.Microsecond, o.skew, o.trip, o.seed)
}

// An outcome is what became of an offer.
type outcome struct {
	utilisation float64 // of the windows after the first few
	trips       float64 // commands a window, of all regions
	latency     []time.Duration
}

// play offers as many units as the limit in each of that many windows, at instants by
// chance, and counts what is admitted by itself.
func (o offer) play(t *testing.T, windows int) (out outcome) {
	synctest.Test(t, func(t *testing.T) {
		const regions, warm = 3, 4
		rng := rand.New(rand.NewPCG(o.seed, 1))
		h := federationtest.NewHub(0)
		p := budget(o.limit, o.window, regions)
		var all []*federation.Region
		for i := range regions {
			cfg := config(p, i)
			cfg.Batch, cfg.Outage = o.batch, o.action
			all = append(all, open(t, cfg, federationtest.NewLine(h, o.trip/2), nil))
		}
		n := newCount(h, p)
		hot := 1.0/regions + o.skew*(1-1.0/regions)
		var mu sync.Mutex
		var work sync.WaitGroup
		nextWindow(h, p)
		before, commands := int64(0), int64(0)
		for w := range warm + windows {
			if w == warm {
				before, commands = n.check(t, o.limit), sent(all)
			}
			start := time.Now()
			at := make([]time.Duration, o.limit)
			for i := range at {
				at[i] = time.Duration(rng.Int64N(int64(o.window))) * time.Microsecond
			}
			slices.SortFunc(at, func(a, b time.Duration) int { return cmp.Compare(a, b) })
			for _, d := range at {
				time.Sleep(time.Until(start.Add(d)))
				i := 0
				if rng.Float64() >= hot {
					i = 1 + rng.IntN(regions-1)
				}
				work.Go(func() {
					asked := time.Now()
					if take(t, all[i], p, 1, 1).Granted == 1 {
						n.add(1)
						mu.Lock()
						out.latency = append(out.latency, time.Since(asked))
						mu.Unlock()
					}
				})
			}
			time.Sleep(time.Until(start.Add(time.Duration(o.window) * time.Microsecond)))
		}
		work.Wait()
		out.utilisation = float64(n.check(t, o.limit)-before) / float64(int64(windows)*o.limit)
		out.trips = float64(sent(all)-commands) / float64(windows)
	})
	slices.Sort(out.latency)
	return out
}

func sent(all []*federation.Region) (n int64) {
	for _, r := range all {
		n += r.Stats().Commands
	}
	return n
}

// TestTheWholeLimitIsUsed offers as much as the limit. Units that are not admitted are
// stranded in an escrow, or kept for a region that does not want them.
func TestTheWholeLimitIsUsed(t *testing.T) {
	for _, o := range []offer{
		{limit: 300, window: limiter.Second, trip: 2 * time.Millisecond},
		{limit: 300, window: 5 * limiter.Second, trip: 2 * time.Millisecond},
		{limit: 300, window: 10 * limiter.Second, trip: 2 * time.Millisecond},
		{limit: 300, window: 10 * limiter.Second, trip: 20 * time.Millisecond},
		{limit: 300, window: 10 * limiter.Second, trip: 100 * time.Millisecond},
		{limit: 1500, window: limiter.Second, trip: 20 * time.Millisecond},
	} {
		for _, o.skew = range []float64{0, 0.25, 0.5, 0.75, 1} {
			for o.seed = range uint64(2) {
				t.Run(o.String(), func(t *testing.T) {
					out := o.play(t, 24)
					t.Logf("U %.4f, %.1f commands a window, latency p50 %v, p99 %v", out.utilisation, out.trips,
						out.latency[len(out.latency)/2], out.latency[len(out.latency)*99/100])
					if out.utilisation < 0.99 {
						t.Errorf("utilisation is %.4f", out.utilisation)
					}
				})
			}
		}
	}
}
