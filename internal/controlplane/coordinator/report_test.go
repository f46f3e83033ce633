package coordinator

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// counted returns the final counts of the window that ends now.
func counted(admitted, refused int64, keys ...*fleetpb.KeyCount) *fleetpb.LimitReport {
	index := time.Now().Unix() - 1
	return &fleetpb.LimitReport{
		Namespace: "shop", Policy: "checkout", Limit: "all", Generation: 1,
		AdmittedTotal: admitted, RefusedTotal: refused, RoundTripsTotal: 1,
		Windows: []*fleetpb.WindowReport{{
			Windows: []*fleetpb.Window{{Rate: &fleetpb.Rate{Limit: 10, WindowMicros: int64(limiter.Second)}, Index: index}},
			Final:   true, Admitted: admitted, Refused: refused, Keys: keys,
		}},
	}
}

// settled connects two sidecars and lets the leader's first seconds pass.
func (l *leader) settled() (a, b *sidecar) {
	a, b = l.connect(pod("shop", "web-0"), "1"), l.connect(pod("shop", "web-1"), "1")
	a.config()
	b.config()
	for range int(figuresTime/time.Second) + 5 {
		a.report()
		b.report()
		time.Sleep(time.Second)
	}
	return a, b
}

// withPair runs f with a leader and two sidecars that enforce the policy, when the leader's
// first seconds have passed.
func withPair(t *testing.T, p policy.Policy, f func(t *testing.T, l *leader, a, b *sidecar)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(p))
		defer l.end()
		a, b := l.settled()
		defer a.close()
		defer b.close()
		f(t, l, a, b)
	})
}

// query returns the next question about keys.
func (s *sidecar) query() *fleetpb.AuditQuery {
	for {
		if q := s.recv().GetAudit(); q != nil {
			return q
		}
	}
}

// reply answers a question with the count of one key.
func (s *sidecar) reply(q *fleetpb.AuditQuery, hash string, admitted int64) {
	s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Audit{Audit: &fleetpb.AuditReply{
		Id: q.GetId(), Keys: []*fleetpb.KeyCount{{Hash: hash, Admitted: admitted}},
	}}})
}

func (l *leader) figures() audit.Figures {
	l.t.Helper()
	got := l.Observe("shop", "checkout")
	if len(got.Limits) != 1 || got.Limits[0].Limit != "all" {
		l.t.Fatalf("observation = %+v, want one limit", got)
	}
	return got.Limits[0].Figures
}

func TestReportsBecomeFigures(t *testing.T) {
	withPair(t, limited("shop", 1, 10, limiter.Second), func(t *testing.T, l *leader, a, b *sidecar) {
		a.report(counted(8, 0))
		b.report(counted(5, 1))
		time.Sleep(time.Second)
		synctest.Wait()
		got := l.figures()
		if got.Verdict != audit.Exceeded || got.Overshoot == nil || got.Overshoot.Observed != 3 {
			t.Errorf("figures = %+v, overshoot %+v, want an overshoot of 3", got, got.Overshoot)
		}
	})
}

func TestASidecarThatVanishesLeavesItsWindowUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		defer l.end()
		a, b := l.settled()
		defer a.close()
		b.close()
		a.report(counted(8, 0))
		time.Sleep(time.Second)
		a.report()
		time.Sleep(time.Second)
		if got := l.figures(); got.Verdict != audit.ReportsMissing {
			t.Errorf("figures = %+v, want reports missing", got)
		}
	})
}

func TestASidecarThatLeavesHasReportedAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		defer l.end()
		a, b := l.settled()
		defer a.close()
		b.report(counted(1, 0))
		b.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Leave{Leave: &fleetpb.Leave{}}})
		b.close()
		a.report(counted(8, 0))
		time.Sleep(time.Second)
		a.report()
		time.Sleep(time.Second)
		if got := l.figures(); got.Verdict != audit.Measured {
			t.Errorf("figures = %+v, want a measurement", got)
		}
	})
}

func TestSidecarsAreAskedForTheKeysTheyDidNotName(t *testing.T) {
	withPair(t, keyed(limited("shop", 1, 10, limiter.Second), 100), func(t *testing.T, l *leader, a, b *sidecar) {
		hot := store.HashValue("hot")
		a.report(counted(9, 0, &fleetpb.KeyCount{Hash: hot, Admitted: 9}))
		b.report(counted(6, 0))
		query := b.query()
		if len(query.GetHashes()) != 1 || query.GetHashes()[0] != hot || len(query.GetWindows()) != 1 {
			t.Errorf("query = %v, want one about the hot key", query)
		}
		b.reply(query, hot, 4)
		time.Sleep(time.Second)
		if got := l.figures(); got.Overshoot == nil || got.Overshoot.Observed != 3 {
			t.Errorf("figures = %+v, want an overshoot of 3", got)
		}
	})
}

// A sidecar reports everything once in a session; what it says before its policies are
// known here counts all the same.
func TestEarlyReportsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 1, 10, limiter.Second)
		l := lead(t, &memoryTerms{}, &policies{})
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.report(counted(18, 0))
		l.policies.set(true, p)
		l.Refresh("shop")
		s.config()
		time.Sleep(2 * time.Second)
		if got := l.figures(); got.Overshoot == nil || got.Overshoot.Worst != 8 {
			t.Errorf("figures = %+v, want an overshoot of at least 8", got)
		}
	})
}

// TestAReportThatAsksForItIsAnswered once it was entered: not before it is known what the sidecar enforces.
func TestAReportThatAsksForItIsAnswered(t *testing.T) {
	for name, early := range map[string]bool{"known policies": false, "policies to come": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := lead(t, &memoryTerms{}, &policies{})
				l.policies.set(!early)
				s := l.dial(tokenOf(pod("shop", "web-0")))
				defer s.close()
				s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: helloOf(pod("shop", "web-0"), "1")}})
				if !s.recv().GetWelcome().GetAnswersReports() {
					t.Error("the welcome does not say that reports are answered")
				}
				answers := make(chan struct{}, 8)
				go func() {
					defer close(answers)
					for {
						m, err := s.stream.Recv()
						if err != nil {
							return
						}
						if m.GetReported() != nil {
							answers <- struct{}{}
						}
					}
				}()
				for _, asks := range []bool{false, true, false, true, false} {
					s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Report{Report: &fleetpb.Report{Answer: asks}}})
				}
				synctest.Wait()
				if early {
					if len(answers) > 0 {
						t.Errorf("%d answers to reports that were only kept", len(answers))
					}
					l.policies.set(true)
					l.Refresh("shop")
					synctest.Wait()
				}
				time.Sleep(time.Second)
				if len(answers) != 2 {
					t.Errorf("%d answers, want 2", len(answers))
				}
				l.end()
				for range answers { // until the stream ends
				}
			})
		})
	}
}

func TestPartsOfAReportBelongTogether(t *testing.T) {
	withPair(t, limited("shop", 1, 10, limiter.Second), func(t *testing.T, l *leader, a, b *sidecar) {
		first := counted(18, 0)
		time.Sleep(time.Second)
		a.report(first, counted(1, 0))
		b.report()
		for range 3 {
			time.Sleep(time.Second)
			a.report()
			b.report()
		}
		time.Sleep(time.Second)
		if got := l.figures(); got.Overshoot == nil || got.Overshoot.Worst != 8 {
			t.Errorf("figures = %+v, want 8 as the worst overshoot", got)
		}
	})
}

// TestTheHottestKeysOfAllPartsAreShown.
func TestTheHottestKeysOfAllPartsAreShown(t *testing.T) {
	withPair(t, keyed(limited("shop", 1, 10, limiter.Second), 100), func(t *testing.T, l *leader, a, b *sidecar) {
		var parts []*fleetpb.LimitReport
		for i, value := range []string{"first", "second"} {
			part := counted(1, 0)
			part.Hottest = []*fleetpb.HotKey{{Hash: store.HashValue(value), Admitted: int64(2 - i)}}
			parts = append(parts, part)
		}
		a.report(parts...)
		got := l.figures().Hottest
		if len(got) != 2 || got[0].Hash != store.HashValue("first") || got[1].Hash != store.HashValue("second") {
			t.Errorf("hottest keys = %+v, want those of both parts", got)
		}
	})
}

func TestStoreErrorsAreObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		r := counted(1, 0)
		r.StoreError = "connection refused"
		s.report(r)
		if got := l.observed(); got.StoreError != "connection refused" {
			t.Errorf("session = %+v, want the store's error", got)
		}
		s.report() // a part of a long report that says nothing of the limit
		if got := l.observed(); got.StoreError != "connection refused" {
			t.Errorf("session = %+v, want the store's error still", got)
		}
		s.report(counted(1, 0))
		if got := l.observed(); got.StoreError != "" {
			t.Errorf("session = %+v, want no error", got)
		}
	})
}

func TestALimitThatGrantsNothingIsObserved(t *testing.T) {
	withPair(t, limited("shop", 1, 10, limiter.Second), func(t *testing.T, l *leader, a, b *sidecar) {
		began := time.Now()
		learns := func(s *sidecar, reason limiter.Reason, lasts time.Duration) {
			r := counted(1, 0)
			r.LearningReason, r.LearningMicros = int32(reason), lasts.Microseconds()
			s.report(r)
		}
		wants := func(want Learning) {
			t.Helper()
			if got := l.Observe("shop", "checkout").Learning["all"]; got != want {
				t.Errorf("learning = %+v, want %+v", got, want)
			}
		}
		wants(Learning{})
		learns(a, limiter.Amnesia, 10*time.Second)
		want := Learning{Since: began, Until: began.Add(10 * time.Second), Reason: limiter.Amnesia}
		wants(want)
		time.Sleep(time.Second)
		learns(a, limiter.Amnesia, 9*time.Second)
		a.report() // a part of a long report that says nothing of the limit
		wants(want)
		learns(b, limiter.ClockBehind, 12*time.Second)
		want.Until, want.Reason = began.Add(13*time.Second), limiter.ClockBehind
		wants(want)
		learns(a, 0, 0)
		want.Since = began.Add(time.Second)
		wants(want)
		time.Sleep(6 * time.Second)
		b.report()
		a.report()
		time.Sleep(6 * time.Second)
		wants(Learning{})
		learns(a, limiter.Amnesia, 9*time.Second)
		learns(b, limiter.ClockBehind, 5*time.Second)
		if got := l.Observe("shop", "checkout").Learning["all"]; got.Until != time.Now().Add(9*time.Second) || got.Reason != limiter.Amnesia {
			t.Errorf("learning = %+v, want what lasts longest", got)
		}
	})
}

func TestSidecarsWithoutRoomForKeysAreObserved(t *testing.T) {
	withPair(t, keyed(limited("shop", 1, 10, limiter.Second), 100), func(t *testing.T, l *leader, a, b *sidecar) {
		says := func(s *sidecar, bound fleetpb.KeysBound, shared int64) (isNew bool) {
			l.drained()
			r := counted(1, 0)
			r.KeysBound, r.SharedKeys = bound, shared
			s.report(r)
			return l.drained()
		}
		wants := func(want KeysFull) {
			t.Helper()
			if got := l.Observe("shop", "checkout").KeysFull["all"]; got != want {
				t.Errorf("observed %+v, want %+v", got, want)
			}
		}
		const full = fleetpb.KeysBound_KEYS_BOUND_MAX_KEYS
		wants(KeysFull{})
		if !says(b, full, 12) {
			t.Error("nobody is notified of the first")
		}
		wants(KeysFull{Pods: 1, Pod: "web-1", Bound: full, Shared: 12})
		if says(b, full, 12) {
			t.Error("what is known already is notified of again")
		}
		says(a, full, 13)
		wants(KeysFull{Pods: 2, Pod: "web-0", Bound: full, Shared: 13})
		a.report() // a part of a long report that says nothing of the limit
		wants(KeysFull{Pods: 2, Pod: "web-0", Bound: full, Shared: 13})
		if !says(a, 0, 0) {
			t.Error("nobody is notified of the end")
		}
		wants(KeysFull{Pods: 1, Pod: "web-1", Bound: full, Shared: 12})
		b.close()
		synctest.Wait()
		wants(KeysFull{})
	})
}

// TestAPodThatIsGoneIsNotWaitedFor, once somebody says that it is.
func TestAPodThatIsGoneIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		defer l.end()
		a, b := l.settled()
		defer a.close()
		a.report(counted(1, 0))
		b.report(counted(1, 0))
		b.close()
		synctest.Wait()
		gone := l.figures().Vanished
		if len(gone) != 1 {
			t.Errorf("pods %v vanished, want one", gone)
		}
		l.Bury("other", "checkout", gone)
		l.Bury("shop", "other", gone)
		if got := l.figures().Vanished; len(got) != 1 {
			t.Errorf("pods %v vanished, want the one of this policy", got)
		}
		l.Bury("shop", "checkout", gone)
		if got := l.figures().Vanished; len(got) != 0 {
			t.Errorf("pods %v vanished, want none", got)
		}
	})
}

func TestReportsOfOtherNamespacesAreIgnored(t *testing.T) {
	withPair(t, limited("shop", 1, 10, limiter.Second), func(t *testing.T, l *leader, a, b *sidecar) {
		stranger := l.connect(pod("other", "web-9"), "1")
		defer stranger.close()
		stranger.config()
		stranger.report(counted(1_000_000, 0))
		a.report(counted(1, 0))
		b.report(counted(1, 0))
		time.Sleep(time.Second)
		if got := l.figures(); got.Verdict != audit.Measured || got.Overshoot.Worst != 0 {
			t.Errorf("figures = %+v, want no overshoot", got)
		}
	})
}

// TestAReportAtRestLeavesLittleGarbage: each sidecar sends one each second.
func TestAReportAtRestLeavesLittleGarbage(t *testing.T) {
	if underRace {
		t.Skip("the race detector drops what is to be used again")
	}
	synctest.Test(t, func(t *testing.T) {
		k := newCaller(t, &memoryTerms{}, newShared(1), limited("shop", 1, 10, limiter.Second))
		defer k.term.tasks.ShutDown()
		same := counted(1, 0)
		same.Windows = nil
		r := &fleetpb.Report{Limits: []*fleetpb.LimitReport{same}}
		if n := testing.AllocsPerRun(100, func() { k.term.enterReport(k.s, r) }); n > 8 {
			t.Errorf("a report is %v allocations", n)
		}
	})
}

// TestALongReportLeavesNothingToTheNext, nor a short one.
func TestALongReportLeavesNothingToTheNext(t *testing.T) {
	for _, limits := range []int{1, maxHeard, maxHeard + 1, 100} {
		var p heards
		of := p.get(limits)
		for i := range limits {
			name := limitName{limit: fmt.Sprint(i)}
			of.reports[name], of.storeErrors[name], of.learning[name] = audit.Report{}, "no route", Learning{}
			of.full[name], of.matches[name] = KeysFull{}, some
		}
		p.put(of)
		if next := p.get(1); len(next.reports)+len(next.storeErrors)+len(next.learning)+len(next.full)+len(next.matches) > 0 {
			t.Errorf("after %d limits: %+v", limits, next)
		}
		if large := limits > maxHeard; large != (len(of.reports) > 0) {
			t.Errorf("%d limits are used again: %t", limits, !large)
		}
	}
}
