package leadership

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const leaseTime = 15 * time.Second

// A standby looks at a Lease that another process holds.
type standby struct {
	t      *testing.T
	server *leases
	leader *Lock
	lock   *Lock
	saw    atomic.Pointer[saw] // nil: Get waits
}

// saw is what Get returned.
type saw struct {
	record *resourcelock.LeaderElectionRecord // nil: no Lease
	err    error
	at     time.Time
}

// watching runs f with a standby that waits.
func watching(t *testing.T, blind error, f func(s *standby)) {
	synctest.Test(t, func(t *testing.T) {
		s := &standby{t: t, server: &leases{blind: blind}}
		config := Config{Leases: s.server, Identity: "leader", Hold: 10 * time.Second, Boot: func() time.Duration { return time.Hour }}
		s.leader = New(config)
		config.Identity = "standby"
		s.lock = New(config)
		s.renew("leader")
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		go func() {
			record, _, err := s.lock.Get(ctx)
			s.saw.Store(&saw{record, err, time.Now()})
		}()
		s.expectWait("when another leads")
		f(s)
	})
}

// renew writes the leader's record, or releases the Lease for "".
func (s *standby) renew(holder string) {
	s.t.Helper()
	record := resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: int(leaseTime / time.Second), RenewTime: metav1.Now()}
	write := s.leader.Update
	if _, _, err := s.leader.Get(s.t.Context()); apierrors.IsNotFound(err) {
		write = s.leader.Create
	}
	if err := write(s.t.Context(), record); err != nil {
		s.t.Fatal(err)
	}
}

func (s *standby) expectWait(when string) {
	s.t.Helper()
	synctest.Wait()
	if saw := s.saw.Load(); saw != nil {
		s.t.Fatalf("%s: Get returned %+v", when, saw)
	}
}

// expectFree expects that Get returned just now that nobody holds the Lease.
func (s *standby) expectFree(when string) {
	s.t.Helper()
	synctest.Wait()
	if saw := s.saw.Load(); saw == nil || !saw.at.Equal(time.Now()) || saw.err != nil || saw.record.HolderIdentity != "" {
		s.t.Fatalf("%s: Get returned %+v, now %s", when, saw, time.Now())
	}
}

func TestAReleaseIsSeenAtOnce(t *testing.T) {
	watching(t, nil, func(s *standby) {
		for range 60 {
			time.Sleep(time.Second)
			s.renew("leader")
			s.expectWait("after a renewal")
		}
		if s.server.gets.Load() > 60+10 { // 60 are the leader's
			s.t.Errorf("the Lease was read %d times", s.server.gets.Load())
		}
		time.Sleep(300 * time.Millisecond)
		s.renew("")
		s.expectFree("after the release")
		began := time.Now()
		old := metav1.NewTime(began.Add(-time.Minute)) // leader election reads the clock before it calls Get
		if err := s.lock.Update(s.t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "standby", AcquireTime: old, RenewTime: old}); err != nil {
			s.t.Fatal(err)
		}
		if spec := s.server.lease.Spec; !spec.RenewTime.Time.Equal(began) || !spec.AcquireTime.Time.Equal(began) {
			s.t.Errorf("taken at %s, the Lease says %s and %s", began, spec.AcquireTime, spec.RenewTime)
		}
		if !s.lock.Held() {
			s.t.Error("who took the Lease does not hold it")
		}
	})
}

func TestACrashedLeaderIsFollowedWhenItsLeaseEnds(t *testing.T) {
	watching(t, nil, func(s *standby) {
		time.Sleep(10 * time.Second)
		s.renew("leader")
		time.Sleep(leaseTime - 1)
		s.expectWait("before the lease ended")
		time.Sleep(time.Nanosecond)
		s.expectFree("when the lease ended")
	})
}

// TestALateRenewalIsNotMissed: the watch did not show it.
func TestALateRenewalIsNotMissed(t *testing.T) {
	watching(t, nil, func(s *standby) {
		time.Sleep(leaseTime - time.Second)
		s.server.cut(false)
		s.renew("leader")
		time.Sleep(time.Second + leaseTime - 1)
		s.expectWait("a lease after the renewal was seen")
		time.Sleep(time.Nanosecond)
		s.expectFree("when the lease ended")
	})
}

func TestADeletedLeaseIsSeenAtOnce(t *testing.T) {
	watching(t, nil, func(s *standby) {
		time.Sleep(time.Second)
		s.server.drop()
		synctest.Wait()
		if saw := s.saw.Load(); saw == nil || !apierrors.IsNotFound(saw.err) {
			s.t.Errorf("Get returned %+v", saw)
		}
	})
}

func TestWithoutAWatchTheLeaseIsPolled(t *testing.T) {
	watching(t, errors.New("forbidden"), func(s *standby) {
		time.Sleep(10*time.Second + watchPause/2)
		s.renew("")
		if s.server.gets.Load() > 13 {
			s.t.Errorf("the Lease was read %d times", s.server.gets.Load())
		}
		time.Sleep(watchPause / 2)
		s.expectFree("a pause after the release")
	})
}

func TestAWatchThatEndsIsBegunAgain(t *testing.T) {
	watching(t, nil, func(s *standby) {
		for range 5 {
			time.Sleep(2 * watchPause)
			synctest.Wait()
			s.server.cut(true)
		}
		s.expectWait("when the watch ended")
		s.renew("")
		s.expectFree("after the release")
	})
}
