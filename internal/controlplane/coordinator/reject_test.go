package coordinator

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// rejectedCount returns how many rows of a kind were rejected.
func (l *leader) rejectedCount(kind string) float64 {
	return testutil.ToFloat64(l.metrics.rejected.WithLabelValues(kind))
}

// answered receives until the answer to a rejected row is there.
func (s *sidecar) answered() *fleetpb.Rejected {
	s.t.Helper()
	for {
		if r := s.recv().GetRejected(); r != nil {
			return r
		}
	}
}

// TestARowThatCannotBeReadCostsThatRow: the row beside it counts, its own window is
// unknown, the answer and the status name the field and the cure, and leases go on.
func TestARowThatCannotBeReadCostsThatRow(t *testing.T) {
	tests := map[string]struct {
		falsify func(*fleetpb.LimitReport)
		want    string
		whole   bool // nothing of the report can be read
	}{
		"a negative count":            {falsify: func(r *fleetpb.LimitReport) { r.Windows[0].Admitted = -1 }, want: "windows[0].admitted is -1"},
		"a count of keys without end": {falsify: func(r *fleetpb.LimitReport) { r.ActiveKeys = 1 << 62 }, want: "active_keys is", whole: true},
		"a total without end":         {falsify: func(r *fleetpb.LimitReport) { r.AdmittedTotal = 1 << 62 }, want: "admitted_total is", whole: true},
		"a negative generation":       {falsify: func(r *fleetpb.LimitReport) { r.Generation = -1 }, want: "generation is -1", whole: true},
		"no window":                   {falsify: func(r *fleetpb.LimitReport) { r.Windows[0].Windows = nil }, want: "windows[0].windows has 0 entries"},
		"a window of no length": {
			falsify: func(r *fleetpb.LimitReport) { r.Windows[0].Windows[0].Rate.WindowMicros = 0 }, want: "windows[0].windows[0].rate.window is 0",
		},
		"a window beyond time": {
			falsify: func(r *fleetpb.LimitReport) { r.Windows[0].Windows[0].Index = 1 << 60 }, want: "windows[0].windows[0].index is",
		},
		"a key that is not a hash": {
			falsify: func(r *fleetpb.LimitReport) { r.Windows[0].Keys = []*fleetpb.KeyCount{{Hash: "x"}} }, want: `windows[0].keys[0].hash is "x"`,
		},
		"a key with less than nothing": {
			falsify: func(r *fleetpb.LimitReport) { r.Windows[0].Keys = []*fleetpb.KeyCount{{Refused: -1}} }, want: "windows[0].keys[0].refused is -1",
		},
		"too many keys": {
			falsify: func(r *fleetpb.LimitReport) { r.Windows[0].Keys = make([]*fleetpb.KeyCount, maxKeys+1) }, want: "windows[0].keys has 1025 entries",
		},
		"counts of keys for other windows": {
			falsify: func(r *fleetpb.LimitReport) { r.Windows[0].Unlisted = []int64{1, 2} }, want: "windows[0].unlisted has 2 entries",
		},
		"a negative count of keys": {
			falsify: func(r *fleetpb.LimitReport) { r.Windows[0].Unlisted = []int64{-1} }, want: "windows[0].unlisted is -1",
		},
		"a share of its own below nothing": {
			falsify: func(r *fleetpb.LimitReport) { r.Windows[0].LocalShare = -1 }, want: "windows[0].local_share is -1",
		},
		"a reason to learn that is not one": {
			falsify: func(r *fleetpb.LimitReport) {
				r.LearningReason, r.LearningMicros = int32(limiter.Exhausted), 1
			}, want: "learning_reason is 1",
		},
		"learning without end": {
			falsify: func(r *fleetpb.LimitReport) {
				r.LearningReason, r.LearningMicros = int32(limiter.Amnesia), 1<<60
			}, want: "learning_micros is",
		},
		"learning without a reason": {falsify: func(r *fleetpb.LimitReport) { r.LearningMicros = 1 }, want: "learning_reason is 0"},
		"a bound of keys that is not one": {
			falsify: func(r *fleetpb.LimitReport) { r.KeysBound, r.SharedKeys = 99, 1 }, want: "keys_bound is 99",
		},
		"keys that share nothing": {
			falsify: func(r *fleetpb.LimitReport) { r.KeysBound = fleetpb.KeysBound_KEYS_BOUND_MAX_KEYS }, want: "shared_keys is 0",
		},
		"keys that are shared without a bound": {falsify: func(r *fleetpb.LimitReport) { r.SharedKeys = 1 }, want: "keys_bound is 0"},
		"a hottest key that is not a hash": {
			falsify: func(r *fleetpb.LimitReport) { r.Hottest = []*fleetpb.HotKey{{Hash: "x"}} }, want: `hottest[0].hash is "x"`,
		},
		"a hottest key with an error below nothing": {
			falsify: func(r *fleetpb.LimitReport) { r.Hottest = []*fleetpb.HotKey{{Error: -1}} }, want: "hottest[0].error is -1",
		},
		"a rate below nothing": {
			falsify: func(r *fleetpb.LimitReport) { r.Hottest = []*fleetpb.HotKey{{AdmittedPerMinute: -1}} }, want: "hottest[0].admitted_per_minute is -1",
		},
		"a rate that is not a number": {
			falsify: func(r *fleetpb.LimitReport) { r.Hottest = []*fleetpb.HotKey{{RefusedPerMinute: math.NaN()}} }, want: "hottest[0].refused_per_minute is NaN",
		},
		"too many hottest keys": {
			falsify: func(r *fleetpb.LimitReport) {
				for range audit.MaxHottest + 1 {
					r.Hottest = append(r.Hottest, &fleetpb.HotKey{})
				}
			}, want: "hottest has 33 entries",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := limited("shop", 1, 10, limiter.Second)
				l := lead(t, &memoryTerms{}, publishing(p))
				defer l.end()
				a, b := l.settled()
				defer a.close()
				defer b.close()
				beside := counted(18, 0) // of the second before: 8 too many
				beside.Windows[0].Windows[0].Index--
				r := counted(1, 0)
				tc.falsify(r)
				if !tc.whole {
					r.Windows = append(r.Windows, beside.Windows...)
				}
				a.report(r)
				b.report()
				answer := a.answered()
				if rows := answer.GetRows(); len(rows) != 1 || answer.GetMore() != 0 || rows[0].GetKind() != "report" || rows[0].GetNamespace() != "shop" ||
					rows[0].GetObject() != "checkout" || rows[0].GetLimit() != "all" || !strings.Contains(rows[0].GetError(), tc.want) || !strings.Contains(rows[0].GetError(), cure) {
					t.Errorf("answer = %v, want one row with %q and the cure", answer, tc.want)
				}
				if n := l.rejectedCount(reportRow); n != 1 {
					t.Errorf("%v rows are counted as rejected, want 1", n)
				}
				if got := l.Observe("shop", "checkout").Sessions[0].Rejected; !strings.Contains(got, "a report of limit all: ") || !strings.Contains(got, tc.want) {
					t.Errorf("the status would say %q, want %q in it", got, tc.want)
				}
				for range 6 {
					time.Sleep(time.Second)
					a.report()
					b.report()
				}
				if got := l.Observe("shop", "checkout").Sessions[0].Rejected; got == "" {
					t.Error("the status says nothing of it any more after six seconds")
				}
				if got := l.figures(); got.Verdict == audit.Measured || got.Verdict == audit.NoTraffic && !tc.whole {
					t.Errorf("figures = %+v, want what was not read to be missed", got)
				} else if !tc.whole && (got.Overshoot == nil || got.Overshoot.Worst != 8) {
					t.Errorf("overshoot = %+v, want the row beside to count", got.Overshoot)
				}
				if reply := a.lease(p, p.Limits[0]); reply.GetGranted() != 1 {
					t.Errorf("reply = %v, want a unit over the same stream", reply)
				}
				for range rejectedTime/time.Second + 2 {
					a.report()
					b.report()
					time.Sleep(time.Second)
				}
				if got := l.Observe("shop", "checkout").Sessions[0].Rejected; got != "" {
					t.Errorf("the status would still say %q", got)
				}
			})
		})
	}
}

// TestWhatARejectedRowCountedIsUnknown, though every other sidecar accounts for the window
// and the one goes on to report.
func TestWhatARejectedRowCountedIsUnknown(t *testing.T) {
	for name, falsify := range map[string]func(*fleetpb.LimitReport){
		"nothing":    func(*fleetpb.LimitReport) {},
		"a row":      func(r *fleetpb.LimitReport) { r.Windows[0].Windows[0].Index = -1 },
		"the report": func(r *fleetpb.LimitReport) { r.AdmittedTotal = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
				defer l.end()
				a, b := l.settled()
				defer a.close()
				defer b.close()
				r := counted(9, 0)
				falsify(r)
				b.report(counted(9, 0))
				a.report(r)
				for range 6 {
					time.Sleep(time.Second)
					a.report()
					b.report()
				}
				want := audit.ReportsMissing
				if name == "nothing" {
					want = audit.Exceeded
				}
				if got := l.figures(); got.Verdict != want {
					t.Errorf("figures = %+v, want verdict %d", got, want)
				}
			})
		})
	}
}

// TestTooManyRowsCostThoseBeyond: as many as are taken count.
func TestTooManyRowsCostThoseBeyond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		r := counted(1, 0)
		for len(r.Windows) <= maxRows {
			r.Windows = append(r.Windows, r.Windows[0])
		}
		s.report(r)
		if answer := s.answered(); len(answer.GetRows()) != 1 || !strings.Contains(answer.GetRows()[0].GetError(), "windows has 257 entries, more than 256") {
			t.Errorf("answer = %v", answer)
		}
		for i := range r.Windows {
			r.Windows[i] = &fleetpb.WindowReport{}
		}
		s.report(r)
		if answer := s.answered(); len(answer.GetRows()) != maxRejected || answer.GetMore() != 257-maxRejected {
			t.Errorf("answer = %v, want %d rows to be named and the rest counted", answer, maxRejected)
		}
		if l.present.Load().sessions.len() != 1 {
			t.Error("the session has ended")
		}
	})
}

// TestAnEarlyRowThatCannotBeReadIsAnswered, once it is known what the pod is served by.
func TestAnEarlyRowThatCannotBeReadIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, &policies{})
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		r := counted(1, 0)
		r.Windows[0].Refused = -1
		s.report(r)
		l.policies.set(true, limited("shop", 1, 10, limiter.Second))
		l.Refresh("shop")
		s.config()
		if answer := s.answered(); len(answer.GetRows()) != 1 {
			t.Errorf("answer = %v, want one row", answer)
		}
		if l.present.Load().sessions.len() != 1 {
			t.Error("the session has ended")
		}
	})
}

// TestAPoolReportThatCannotBeReadCostsThatReport: limits in the same message count.
func TestAPoolReportThatCannotBeReadCostsThatReport(t *testing.T) {
	for want, change := range map[string]func(*fleetpb.PoolReport){
		"in_flight is -1":   func(r *fleetpb.PoolReport) { r.InFlight = -1 },
		"admitted_total is": func(r *fleetpb.PoolReport) { r.AdmittedTotal = maxCount + 1 },
		"partitions has 17 entries": func(r *fleetpb.PoolReport) {
			r.Partitions = make([]*fleetpb.PoolReport_Partition, policy.MaxPartitions+1)
		},
		"partitions[0].name has 64": func(r *fleetpb.PoolReport) {
			r.Partitions = []*fleetpb.PoolReport_Partition{{Name: strings.Repeat("n", maxName+1)}}
		},
		"partitions[0].in_flight is -1": func(r *fleetpb.PoolReport) {
			r.Partitions = []*fleetpb.PoolReport_Partition{{Name: "live", InFlight: -1}}
		},
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := pooled("shop", 1, 10)
				l := lead(t, first(), sharing(p))
				defer l.end()
				h := l.join(pod("shop", "web-0"), "1")
				defer h.close()
				h.reportPool(p)
				h.reportPool(p, change)
				if rows := h.answered().GetRows(); len(rows) != 1 || rows[0].GetKind() != "pool" || rows[0].GetObject() != "db" || !strings.Contains(rows[0].GetError(), want) {
					t.Errorf("answer = %v, want %q", rows, want)
				}
				got := l.ObservePool("shop", "db")
				if len(got.Sessions) != 1 || !strings.Contains(got.Sessions[0].Rejected, want) || got.Sessions[0].Report.InFlight != 3 || l.rejectedCount(poolRow) != 1 {
					t.Errorf("observation = %+v, want the session, its last report and why the next was not read", got)
				}
				h.reportPool(p, func(r *fleetpb.PoolReport) { r.InFlight = 4 })
				if got := l.ObservePool("shop", "db"); got.Sessions[0].Report.InFlight != 4 {
					t.Errorf("observation = %+v, want what came after", got)
				}
			})
		})
	}
}

// TestAnAuditReplyThatCannotBeReadLeavesItsWindowUnknown, and its stream open.
func TestAnAuditReplyThatCannotBeReadLeavesItsWindowUnknown(t *testing.T) {
	withPair(t, keyed(limited("shop", 1, 10, limiter.Second), 100), func(t *testing.T, l *leader, a, b *sidecar) {
		hot := store.HashValue("hot")
		a.report(counted(9, 0, &fleetpb.KeyCount{Hash: hot, Admitted: 9}))
		b.report(counted(6, 0))
		b.reply(b.query(), hot, -4)
		if rows := b.answered().GetRows(); len(rows) != 1 || rows[0].GetKind() != "reply" || rows[0].GetObject() != "checkout" || rows[0].GetLimit() != "all" ||
			!strings.Contains(rows[0].GetError(), "keys[0].admitted is -4") {
			t.Errorf("answer = %v", rows)
		}
		time.Sleep(time.Second)
		if got := l.figures(); got.Verdict != audit.ReportsMissing || l.rejectedCount(replyRow) != 1 {
			t.Errorf("figures = %+v, want the window to be unknown", got)
		}
		if l.present.Load().sessions.len() != 2 {
			t.Error("a session has ended")
		}
	})
}

// TestAReturnThatCannotBeReadIsAnswered, though those that can are not.
func TestAReturnThatCannotBeReadIsAnswered(t *testing.T) {
	p := limited("shop", 1, 10, limiter.Second)
	withOne(t, p, func(t *testing.T, l *leader, s *sidecar) {
		reply := s.lease(p, p.Limits[0], want(10))
		window := reply.GetWindows()[0]
		window.Index = -1
		s.giveBack(4, reply.GetWindows())
		if rows := s.answered().GetRows(); len(rows) != 1 || rows[0].GetKind() != "return" || !strings.Contains(rows[0].GetError(), "windows[0].index is -1") {
			t.Errorf("answer = %v, want the field that is wrong", rows)
		}
		if reply := s.lease(p, p.Limits[0], want(10)); reply.GetGranted() != 0 || l.rejectedCount(returnRow) != 1 {
			t.Errorf("reply = %v, want nothing to have been returned", reply)
		}
		if got := l.Observe("shop", "checkout").Sessions[0].Rejected; !strings.Contains(got, "a return of limit all: windows[0].index") {
			t.Errorf("the status would say %q", got)
		}
	})
}

// TestALeaseOrBeatThatNobodyMaySendIsCounted, and of nothing that the pod is not served
// by does a status speak: names that a holder invents take no room.
func TestALeaseOrBeatThatNobodyMaySendIsCounted(t *testing.T) {
	p := limited("shop", 1, 10, limiter.Second)
	withOne(t, p, func(t *testing.T, l *leader, s *sidecar) {
		if reply := s.lease(p, p.Limits[0], func(r *fleetpb.LeaseRequest) { r.Op = 77 }); !reply.GetDefect() || !strings.HasSuffix(reply.GetError(), "op 77"+cure) {
			t.Errorf("reply = %v, want the defect and its cure", reply)
		}
		for i := range 5 {
			s.lease(p, p.Limits[0], func(r *fleetpb.LeaseRequest) { r.Key.Namespace, r.Key.Limit = "bank", fmt.Sprint(i) })
			s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Heartbeat{Heartbeat: &fleetpb.Heartbeat{Id: 1, Namespace: "bank", Pool: fmt.Sprint(i)}}})
			s.recv()
		}
		if l.rejectedCount(leaseRow) != 6 || l.rejectedCount(beatRow) != 5 {
			t.Errorf("%v leases and %v beats are counted", l.rejectedCount(leaseRow), l.rejectedCount(beatRow))
		}
		held := l.present.Load().sessions.of("web-0-uid")
		if len(held.rejected) != 1 || len(held.rejectedPools) != 0 {
			t.Errorf("kept %v and %v, want the limit of the pod alone", held.rejected, held.rejectedPools)
		}
	})
}
