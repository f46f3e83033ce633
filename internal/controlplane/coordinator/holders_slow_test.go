package coordinator

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// slowFleet is of how many sidecars; every fifth has a slow leader, and slowShare is the share of each.
const (
	slowFleet = 100
	slowShare = 20
)

// TestASlowLeaderThatCrashesKeepsTheLimit: its answers to some sidecars are late in the windows before,
// and it grants all of the limit to others. No sidecar begins a window on its local share unless the
// leader was silent for a second on a stream that stands. Those are all that the limit may be exceeded by.
func TestASlowLeaderThatCrashesKeepsTheLimit(t *testing.T) {
	for _, tc := range []struct {
		takes  time.Duration
		silent int64 // sidecars that are on their shares
	}{
		{0, 0},
		{150 * time.Millisecond, 0},
		{twotier.SilenceTime - time.Millisecond, 0},
		{twotier.SilenceTime + time.Millisecond, slowFleet / 5},
		{time.Minute, slowFleet / 5},
	} {
		t.Run(fmt.Sprint(tc.takes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := crashSlow(t, tc.takes)
				if most := tc.silent * slowShare; over > most || over <= 0 && most > 0 {
					t.Errorf("a window admitted %d more than the limit, at most %d are those of silent sidecars", over, most)
				}
			})
		})
	}
}

// crashSlow returns by how much the window with most exceeds the limit, when every fifth sidecar waits
// so long for an answer. Each asks for twice its part.
func crashSlow(t *testing.T, takes time.Duration) (over int64) {
	const limit, window = slowFleet * slowShare, 10 * limiter.Second
	p := limited("shop", 1, limit, window)
	p.OnStoreUnavailable = policy.LocalShare
	config, err := newConfig(policy.Snapshot{Cluster: "test", Policies: []policy.Policy{p}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	terms := &memoryTerms{}
	begun, err := terms.Begin(t.Context(), leads)
	if err != nil {
		t.Fatal(err)
	}
	begun.First = true
	settings := Config{Terms: terms, Resolver: publishing(p)}
	podsOf().watched(&settings)
	leader := newTerm(New(settings), begun, logr.Discard())
	leader.absences.Await(nil)
	defer leader.tasks.ShutDown()

	admitted := newAdmissions(window, time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	var members []*member
	for i := range slowFleet {
		id := podauth.Identity{Namespace: "shop", Pod: fmt.Sprint("web-", i), PodUID: fmt.Sprint(i)}
		m := newMember(t, id, p)
		m.join(leader, config)
		members = append(members, m)
	}
	leader.sendHolders("shop")
	for i, m := range members {
		m.hear()
		running.Go(func() { m.load(ctx, time.Duration(i)*askInterval/slowFleet, admitted) })
	}
	time.Sleep(12 * time.Second) // all know the store's clock
	for i, m := range members {
		if i%5 == 0 {
			m.mu.Lock()
			m.slow = takes
			m.mu.Unlock()
		}
	}
	time.Sleep(17 * time.Second) // the limit of a window is used up
	leader.store.Seal()
	for _, m := range members {
		m.part()
	}
	time.Sleep(12 * time.Second)
	stop()
	running.Wait()
	if n := admitted.in(admitted.window(time.Now()) - 1); n == 0 {
		t.Error("nothing is admitted without a leader")
	}
	return admitted.most() - limit
}
