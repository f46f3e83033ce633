package redis_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// stormWindow is short, so that a loss leaves little unserved.
const stormWindow, stormLimit = 300 * limiter.Millisecond, 20

// TestNoLossAdmitsTooMuch asks for far more than the limits while servers lose what
// they know, and adds up by itself what they granted.
func TestNoLossAdmitsTooMuch(t *testing.T) {
	const lag = 50 * time.Millisecond // of a dump or a replica, in which the load goes on
	for name, start := range map[string]func(t *testing.T) (s *redis.Store, losses []func()){
		"kill -9 and a restart": func(t *testing.T) (*redis.Store, []func()) {
			server := redistest.Start(t)
			return dial(t, server), slices.Repeat([]func(){server.Restart}, 5)
		},
		"FLUSHALL": func(t *testing.T) (*redis.Store, []func()) {
			server := redistest.Start(t)
			return dial(t, server), slices.Repeat([]func(){server.Flush}, 5)
		},
		"FLUSHALL and SCRIPT FLUSH": func(t *testing.T) (*redis.Store, []func()) {
			server := redistest.Start(t)
			return dial(t, server), slices.Repeat([]func(){func() { server.Flush(); server.FlushScripts() }}, 5)
		},
		"a restart from an old dump": func(t *testing.T) (*redis.Store, []func()) {
			server := redistest.Start(t)
			return dial(t, server), slices.Repeat([]func(){
				func() { server.Do("SAVE"); <-time.After(lag); server.Restart() },
			}, 5)
		},
		"kill -9 and a restart, over HTTP": func(t *testing.T) (*redis.Store, []func()) {
			server := redistest.Start(t)
			return overHTTP(t, server.StartBridge(), redis.OpenREST), slices.Repeat([]func(){server.Restart}, 3)
		},
		"lost answers over HTTP": func(t *testing.T) (*redis.Store, []func()) {
			bridge := redistest.Start(t).StartBridge()
			return overHTTP(t, bridge, redis.OpenREST), slices.Repeat([]func(){lostAnswers(bridge)}, 5)
		},
		"FLUSHALL of a service that hides its instance": func(t *testing.T) (*redis.Store, []func()) {
			server := redistest.Start(t)
			return overHTTP(t, server.StartBridge(), redis.OpenService), slices.Repeat([]func(){func() { server.Flush(); server.FlushScripts() }}, 3)
		},
		"a failover by Sentinels": func(t *testing.T) (*redis.Store, []func()) {
			primary := redistest.Start(t)
			replica := primary.StartReplica()
			sentinels := redistest.StartSentinels(t, 3, "limits", primary)
			return open(t, redis.Options{Addresses: sentinels, Sentinel: "limits"}), []func(){func() { primary.FailOver(replica, lag) }}
		},
		"a failover of a cluster's node": func(t *testing.T) (*redis.Store, []func()) {
			cluster := redistest.StartCluster(t, 3)
			replica := cluster.StartReplica(cluster.Nodes[0])
			s := open(t, redis.Options{Addresses: cluster.Addrs(), Cluster: true})
			return s, []func(){func() { cluster.Nodes[0].FailOver(replica, lag) }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for windows
			s, losses := start(t)
			a := &audit{}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var load sync.WaitGroup
			for worker := range 4 {
				load.Go(func() { a.load(ctx, s, worker) })
			}
			for range losses {
				a.awaitGrants(t)
				losses[0]()
			}
			a.awaitGrants(t)
			stop()
			load.Wait()
			a.judge(t, len(losses))
		})
	}
}

// An audit notes what was granted, and to which promise it was made.
type audit struct {
	mu      sync.Mutex
	grants  map[string][]grant          // by counter
	unknown map[string]map[int64]string // windows of a counter that were not served
	errs    []error
}

type grant struct {
	limiter.Result
	params limiter.Params
}

// promises are what the counters are asked by.
var promises = []limiter.Params{
	{Generation: 1, Algorithm: limiter.FixedWindow},
	{Generation: 1, Algorithm: limiter.SlidingLog},
	{Generation: 1, Algorithm: limiter.TokenBucket},
}

// load asks until ctx is done.
func (a *audit) load(ctx context.Context, s *redis.Store, worker int) {
	for i := worker; ctx.Err() == nil; i++ {
		p := promises[i%len(promises)]
		p.Rates = []limiter.Rate{{Limit: stormLimit, Window: stormWindow}}
		counter := fmt.Sprintf("%v %d", p.Algorithm, i%12)
		res, err := s.Apply(ctx, counterOf(counter), p, limiter.Command{Min: 1, Want: 1 + int64(i%7)})
		a.note(counter, grant{res, p}, err)
		if err != nil {
			<-time.After(time.Millisecond) // a server that is away answers at once
		}
	}
}

func (a *audit) note(counter string, g grant, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err != nil:
		a.errs = append(a.errs, err)
	case g.Granted > 0:
		if a.grants == nil {
			a.grants = map[string][]grant{}
		}
		a.grants[counter] = append(a.grants[counter], g)
	case g.Reason == limiter.Amnesia && g.Algorithm.WindowCoupled():
		if a.unknown == nil {
			a.unknown = map[string]map[int64]string{}
		}
		if a.unknown[counter] == nil {
			a.unknown[counter] = map[int64]string{}
		}
		a.unknown[counter][g.Windows.Open[0].Index] = counter
	}
}

// awaitGrants blocks until every counter was granted something that it was not when
// the call began.
func (a *audit) awaitGrants(t *testing.T) {
	t.Helper()
	before := a.counts()
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(5 * time.Millisecond) {
		now, all := a.counts(), true
		for i := range 12 {
			counter := fmt.Sprintf("%v %d", promises[i%len(promises)].Algorithm, i)
			all = all && now[counter] > before[counter]
		}
		if all {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not every counter is served again: %v, before %v", now, before)
		}
	}
}

func (a *audit) counts() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := map[string]int{}
	for counter, grants := range a.grants {
		n[counter] = len(grants)
	}
	return n
}

// judge adds up.
func (a *audit) judge(t *testing.T, losses int) {
	t.Helper()
	for _, err := range a.errs {
		if _, ok := errors.AsType[*store.UnavailableError](err); !ok {
			t.Errorf("error %v (%T), want a *store.UnavailableError", err, err)
		}
	}
	for counter, windows := range a.unknown {
		if len(windows) > losses+1 { // one because the server was new
			t.Errorf("%s: %d losses left %d windows unserved", counter, losses, len(windows))
		}
	}
	for counter, grants := range a.grants {
		slices.SortFunc(grants, func(x, y grant) int { return int(x.Now - y.Now) })
		if over := overAdmitted(grants); over > 0 {
			t.Errorf("%s: %d admitted too much", counter, over)
		}
	}
}

// overAdmitted returns by how much the grants, ordered by time, break the promise.
func overAdmitted(grants []grant) int64 {
	var most int64
	windows := map[int64]int64{}
	for i, last := range grants {
		var sum int64
		switch last.Algorithm {
		case limiter.FixedWindow:
			w := last.Windows.Open[0]
			windows[w.Index] += last.Granted
			most = max(most, windows[w.Index]-w.Limit)
		case limiter.SlidingLog:
			for j := i; j >= 0 && last.Now.Sub(grants[j].Now) < stormWindow; j-- {
				sum += grants[j].Granted
			}
			most = max(most, sum-stormLimit)
		default:
			for j := i; j >= 0; j-- {
				sum += grants[j].Granted
				passed := int64(last.Now.Sub(grants[j].Now))
				most = max(most, sum-stormLimit-passed*stormLimit/int64(stormWindow))
			}
		}
	}
	return most
}

// TestALossyFailoverCostsAWindow kills a primary in an open window that its replica
// knows nothing of.
func TestALossyFailoverCostsAWindow(t *testing.T) {
	t.Parallel() // it waits for windows
	primary := redistest.Start(t)
	replica := primary.StartReplica()
	sentinels := redistest.StartSentinels(t, 3, "limits", primary)
	s := open(t, redis.Options{Addresses: sentinels, Sentinel: "limits"})
	p := perWindow(10, 6*limiter.Second)
	untilGranted(t, s, counterOf("begin"), p)
	replica.Pause()
	primary.Do("CLIENT", "KILL", "TYPE", "replica")
	spent := apply(t, s, counterOf("a"), p, limiter.Command{Min: 1, Want: 10})
	primary.Kill()
	replica.Resume()

	var res limiter.Result
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(10 * time.Millisecond) {
		var err error
		if res, err = s.Apply(t.Context(), counterOf("a"), p, lease); err == nil {
			break
		}
		wantUnavailable(t, err)
		if time.Now().After(deadline) {
			t.Fatalf("no failover: %v", err)
		}
	}
	if !res.Windows.SameWindows(spent.Windows) {
		t.Skipf("the failover took longer than the window: it shows nothing")
	}
	if res.Granted > 0 || res.Reason != limiter.Amnesia {
		t.Errorf("the new primary grants %d (%v) of a window that was spent", res.Granted, res.Reason)
	}
	if strings.Contains(replica.Do("INFO", "replication").(string), "role:slave") {
		t.Error("the replica was not promoted")
	}
	if res := untilGranted(t, s, counterOf("a"), p); res.Granted != lease.Want {
		t.Errorf("the next window grants %d, want %d", res.Granted, lease.Want)
	}
}
