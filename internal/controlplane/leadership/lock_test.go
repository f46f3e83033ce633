package leadership

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/weir-dev/weir/pkg/limiter"
)

func TestHeld(t *testing.T) {
	const hold = 10 * time.Second
	me := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	nobody := resourcelock.LeaderElectionRecord{}

	type step struct {
		record *resourcelock.LeaderElectionRecord // nil: nothing is written
		took   time.Duration                      // by the write
		fails  lossiness
		wait   time.Duration // after it
		held   bool
	}
	tests := map[string][]step{
		"nobody leads before the first write":           {{held: false}},
		"a leader holds the lock it wrote":              {{record: &me, held: true}},
		"a leader holds until the renewal is used up":   {{record: &me, wait: hold - 1, held: true}, {wait: 1, held: false}},
		"a renewal counts from before it was sent":      {{record: &me, took: hold - 1, held: true}, {wait: 1, held: false}},
		"a renewal that failed does not count":          {{record: &me, wait: hold - 1, held: true}, {record: &me, fails: lost, wait: 1, held: false}},
		"a renewal prolongs":                            {{record: &me, wait: hold - 1, held: true}, {record: &me, wait: hold - 1, held: true}},
		"who releases does not hold":                    {{record: &me, held: true}, {record: &nobody, held: false}},
		"a release that failed may have arrived":        {{record: &me, held: true}, {record: &nobody, fails: unheard, held: false}},
		"who was suspended past the renewal leads not":  {{record: &me, wait: time.Hour, held: false}},
		"a reply that took longer than it holds is old": {{record: &me, took: hold, held: false}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Minute
			server := &leases{lease: &coordinationv1.Lease{}}
			lock := New(Config{Leases: server, Identity: "me", Hold: hold, Boot: func() time.Duration { return now }})
			if _, _, err := lock.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i, s := range steps {
				server.fails, server.took = s.fails, func() { now += s.took }
				if s.record != nil {
					if err := lock.Update(t.Context(), *s.record); (err != nil) != (s.fails != lossless) {
						t.Fatalf("step %d: error %v", i, err)
					}
				}
				now += s.wait
				if got := lock.Held(); got != s.held {
					t.Errorf("step %d: held is %v, want %v", i, got, s.held)
				}
				if covers := lock.Clock() != nil && lock.Covers(lock.Clock().Now()); covers != s.held {
					t.Errorf("step %d: covers is %v, want %v", i, covers, s.held)
				}
			}
		})
	}
}

// A leader that was suspended, and followed by another one, does not go on with its own
// clock and counters when the Lease is gone.
func TestALeaderThatLapsedDoesNotCreateTheLease(t *testing.T) {
	now := time.Minute
	server := &leases{}
	lock := New(Config{Leases: server, Identity: "me", Hold: 10 * time.Second, Boot: func() time.Duration { return now }})
	me := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	for _, passed := range []time.Duration{0, 10*time.Second - 1, 10 * time.Second} {
		now += passed
		lapsed := passed == 10*time.Second
		if err := lock.Create(t.Context(), me); (err != nil) != lapsed || lock.Held() == lapsed {
			t.Errorf("%s after a renewal: error %v, held %v", passed, err, lock.Held())
		}
	}
}

// The timeout of leader election would end every watch of the process.
func TestLeasesLeavesTheConfigAsItIs(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	if _, err := Leases(config, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if config.Timeout != 0 || config.UserAgent != "" {
		t.Errorf("the config now has timeout %s and user agent %q", config.Timeout, config.UserAgent)
	}
}

func TestSinceBootAdvances(t *testing.T) {
	first := sinceBoot()
	if second := sinceBoot(); first <= 0 || second < first {
		t.Errorf("time since boot went from %s to %s", first, second)
	}
}

func TestPast(t *testing.T) {
	renewed := limiter.Instant(1_800_000_000_000_000)
	lease := func(holder string, clock string, at limiter.Instant) *coordinationv1.Lease {
		out := &coordinationv1.Lease{}
		out.Spec.HolderIdentity = &holder
		if clock != "" {
			out.Annotations = map[string]string{ClockAnnotation: clock}
		}
		if at > 0 {
			out.Spec.RenewTime = &metav1.MicroTime{Time: time.UnixMicro(int64(at))}
		}
		return out
	}
	ahead := fmt.Sprint(int64(renewed.Add(limiter.Second)))
	behind := fmt.Sprint(int64(renewed.Add(-limiter.Second)))
	tests := map[string]struct {
		lease *coordinationv1.Lease
		want  Past
	}{
		"there is no Lease":                      {want: Past{Overlap: 10 * limiter.Second}},
		"an empty one":                           {lease: lease("", "", 0)},
		"held, the clock is ahead of the wall":   {lease: lease("a", ahead, renewed), want: Past{Renewed: renewed.Add(limiter.Second), Served: renewed.Add(11 * limiter.Second)}},
		"held, the clock is behind the wall":     {lease: lease("a", behind, renewed), want: Past{Renewed: renewed.Add(-limiter.Second), Served: renewed.Add(10 * limiter.Second)}},
		"released":                               {lease: lease("", ahead, renewed), want: Past{Renewed: renewed.Add(limiter.Second), Served: renewed.Add(limiter.Second)}},
		"of a version that leases no clock":      {lease: lease("a", "", renewed), want: Past{Served: renewed.Add(10 * limiter.Second)}},
		"of such a version, released":            {lease: lease("", "", renewed), want: Past{Served: renewed}},
		"the annotation is not a number":         {lease: lease("a", "soon", renewed), want: Past{Served: renewed.Add(10 * limiter.Second)}},
		"the annotation is beyond what counts":   {lease: lease("a", "9223372036854775807", renewed), want: Past{Served: renewed.Add(10 * limiter.Second)}},
		"this process's name, which never tried": {lease: lease("me", ahead, renewed), want: Past{Renewed: renewed.Add(limiter.Second), Served: renewed.Add(11 * limiter.Second)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			lock := New(Config{Leases: &leases{lease: tc.lease}, Identity: "me", Hold: 10 * time.Second})
			_, _, _ = lock.Get(t.Context())
			if got := lock.Past(); got != tc.want {
				t.Errorf("past = %+v, want %+v", got, tc.want)
			}
		})
	}
}

// No leader's clock shows an instant that one before it had covered, for any clocks of the
// nodes: over leaders that renew, are not heard, release, crash and are followed at once or
// late, with a Lease that somebody deletes.
func TestNoInstantIsCoveredByTwoLeaders(t *testing.T) {
	const hold, lease = 10 * time.Second, 15 * time.Second
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			boot := time.Now()
			server := &leases{took: func() { time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Second)))) }}
			var newest limiter.Instant // covered by any leader
			for i := range 8 {
				offset := time.Duration(rng.Int64N(int64(time.Hour))) - 30*time.Minute
				lock := New(Config{
					Leases: server, Identity: fmt.Sprint(i), Hold: hold,
					Boot: func() time.Duration { return time.Since(boot) },
					Wall: func() time.Time { return time.Now().Add(offset) },
				})
				newest = leadOnce(t, rng, server, lock, newest)
				if rng.IntN(2) == 0 {
					server.fails = lossless
					_ = lock.Update(t.Context(), resourcelock.LeaderElectionRecord{RenewTime: metav1.Now()}) // fails if it never held
				} else {
					time.Sleep(lease)
				}
			}
		})
	}
}

// leadOnce takes the lock and renews it for a while. It returns the newest instant that
// it covered, or the one it was given.
func leadOnce(t *testing.T, rng *rand.Rand, server *leases, lock *Lock, newest limiter.Instant) limiter.Instant {
	t.Helper()
	record := resourcelock.LeaderElectionRecord{HolderIdentity: lock.Identity()}
	before, deleted := newest, false
	if _, _, err := lock.Get(t.Context()); err == nil && rng.IntN(8) == 0 {
		server.lease, deleted = nil, true // as this process has just looked
	}
	for range 1 + rng.IntN(20) {
		server.fails = lossiness(rng.IntN(3))
		record.RenewTime = metav1.Now() // of a node whose clock is right, as it was before
		if deleted || server.lease == nil {
			server.fails = []lossiness{lossless, unheard}[rng.IntN(2)] // a process that saw no Lease does not know the past
			_ = lock.Create(t.Context(), record)
			deleted = server.lease == nil
		} else {
			_, _, _ = lock.Get(t.Context())
			_ = lock.Update(t.Context(), record)
		}
		for range rng.IntN(4) {
			clock := lock.Clock()
			if rng.IntN(8) == 0 { // of what the coordinator's own record says
				clock.Raise(clock.Now().Add(limiter.Micros(rng.Int64N(int64(60 * limiter.Second)))))
			}
			if at := clock.Now(); lock.Covers(at) {
				if at <= before {
					t.Fatalf("%d is covered, but a leader before covered %d", at, before)
				}
				newest = max(newest, at)
			}
			time.Sleep(time.Duration(rng.Int64N(int64(6 * time.Second))))
		}
	}
	return newest
}

func TestChangesByOthersBetweenReads(t *testing.T) {
	const hold = 10 * limiter.Second
	synctest.Test(t, func(t *testing.T) {
		now := limiter.Instant(time.Now().UnixMicro())
		mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
		other := "other"
		lease := func(clock limiter.Instant) *coordinationv1.Lease {
			out := &coordinationv1.Lease{}
			out.Spec.HolderIdentity = &other
			out.Annotations = map[string]string{ClockAnnotation: fmt.Sprint(int64(clock))}
			return out
		}
		server := &leases{}
		look := func(l *Lock) {
			if _, _, err := l.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		fresh := func() *Lock { return New(Config{Leases: server, Identity: "me", Hold: 10 * time.Second}) }

		// The leader renewed after this process looked, then somebody deleted the Lease.
		lock := fresh()
		server.lease = lease(now.Add(60 * limiter.Second))
		look(lock)
		server.lease = nil
		if err := lock.Create(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
		if want := (Past{Renewed: now.Add(60 * limiter.Second), Served: now.Add(60*limiter.Second + 2*hold), Overlap: hold}); lock.Past() != want {
			t.Errorf("past = %+v, want %+v", lock.Past(), want)
		}
		if got := lock.Clock().Now(); got < lock.Past().Served {
			t.Errorf("the clock shows %d, before %d", got, lock.Past().Served)
		}

		// This process tried in vain, and another one led meanwhile.
		lock = fresh()
		server.lease, server.fails = lease(now), lost
		look(lock)
		_ = lock.Update(t.Context(), mine)
		server.lease, server.fails = lease(now.Add(60*limiter.Second)), lossless
		look(lock)
		if err := lock.Update(t.Context(), mine); err != nil || lock.Clock().Now() < now.Add(60*limiter.Second+hold) {
			t.Errorf("the clock shows %d: %v", lock.Clock().Now(), err)
		}

		// A write of this process is not a past, although it did not hear of it.
		lock = fresh()
		server.lease, server.fails = nil, unheard
		_ = lock.Create(t.Context(), mine)
		look(lock)
		if want := (Past{Overlap: hold}); lock.Past() != want {
			t.Errorf("past = %+v, want %+v", lock.Past(), want)
		}
	})
}
